"""What staff fill in. What the page showed comes back hidden, so that an outdated page changes nothing."""

from typing import Any
from uuid import uuid4

from django import forms

from core.money import InvalidAmount, parse_amount
from videos.desk import MAX_UPSTREAM_ID

LONGEST_REASON = 500  # what evidence and transfers keep


class _WithReason(forms.Form):
    reason = forms.CharField(
        label="Reason (kept for ever, not shown to the user)",
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class ActionForm(_WithReason):
    state_shown = forms.CharField(widget=forms.HiddenInput)


class AdoptForm(ActionForm):
    field_order = ("upstream_id", "reason")
    upstream_id = forms.CharField(label="The provider's id of the job", max_length=MAX_UPSTREAM_ID)

    def clean_upstream_id(self) -> str:
        text: str = self.cleaned_data["upstream_id"]
        if not text.isprintable() or " " in text:
            raise forms.ValidationError("This is not an id.")
        return text


class GoodwillForm(_WithReason):
    """`reference` makes a form that is sent twice give once."""

    field_order = ("amount", "reason")
    amount = forms.CharField(label="Amount to return", max_length=40)
    returned_shown_micros = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    amount_previewed = forms.CharField(widget=forms.HiddenInput, required=False)
    reference = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)

    def clean_amount(self) -> int:
        """In micro-units."""
        try:
            micros = parse_amount(self.cleaned_data["amount"].strip())
        except InvalidAmount as error:
            raise forms.ValidationError(str(error)) from error
        if micros < 1:
            raise forms.ValidationError("The amount must be above zero.")
        return micros

    @property
    def transfer_reference(self) -> str:
        return f"staff-{self.cleaned_data['reference']}"

    def is_confirmed(self, posted: Any) -> bool:
        """Whether the amount is the one whose effects were on the page when it was sent."""
        return "confirm" in posted and posted.get("amount_previewed") == str(self.cleaned_data["amount"])
