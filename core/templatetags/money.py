"""Amounts on pages: `{{ micros|amount }}` and `{{ micros|money:currency }}`. Never a float."""

from django import template

from core.money import format_amount, format_money

register = template.Library()


@register.filter
def amount(micros: int) -> str:
    return format_amount(micros)


@register.filter
def money(micros: int, currency: str) -> str:
    return format_money(micros, currency)
