"""allauth's forms with our words: the label over a field says what it is, so no placeholder repeats it."""

from typing import Any

from allauth.account import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

LABELS: dict[str, str | Promise] = {
    "login": _("Username or e-mail"),
    "username": _("Username"),
    "email": _("E-mail"),
    "password": _("Password"),
    "password1": _("New password"),
    "password2": _("New password again"),
    "oldpassword": _("Current password"),
}


class Worded:
    """Puts our labels on the fields of the form it is mixed into."""

    fields: dict[str, Any]
    labels: dict[str, str | Promise] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.label = self.labels.get(name, LABELS.get(name, field.label))
            field.widget.attrs.pop("placeholder", None)


class SignInForm(Worded, forms.LoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].help_text = ""  # the page has the link to a new password already


class SignUpForm(Worded, forms.SignupForm):
    labels = {
        "email": _("E-mail (optional)"),
        "password1": _("Password"),
        "password2": _("Password again"),
    }


class AddressForm(Worded, forms.AddEmailForm):
    pass


class ChangePasswordForm(Worded, forms.ChangePasswordForm):
    pass


class SetPasswordForm(Worded, forms.SetPasswordForm):
    pass


class ResetPasswordForm(Worded, forms.ResetPasswordForm):
    pass


class ResetPasswordKeyForm(Worded, forms.ResetPasswordKeyForm):
    pass


class ConfirmForm(Worded, forms.ReauthenticateForm):
    pass
