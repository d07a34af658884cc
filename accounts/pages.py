"""The account page: profile, API tokens, preferences."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views import i18n
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from accounts import operations, queries
from accounts.models import User

MAX_TOKEN_NAME = 64


@login_required
@never_cache
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    return _page(request)


@login_required
@never_cache
@require_POST
def create_token(request: HttpRequest) -> HttpResponse:
    """Make a token and show its secret, this once."""
    name = request.POST.get("name", "").strip()
    if not 1 <= len(name) <= MAX_TOKEN_NAME or not name.isprintable():
        return _page(request, errors={"name": _("A name of 1 to 64 characters is needed.")}, status=400)
    key = operations.create_token(user=_user(request), name=name, now=timezone.now())
    return _page(request, new_token=key, status=201)


@login_required
@require_POST
def revoke_token(request: HttpRequest, token_id: UUID) -> HttpResponse:
    operations.revoke_token(user=_user(request), token_id=token_id, now=timezone.now())
    return redirect("/account/")


def set_language(request: HttpRequest) -> HttpResponse:
    """Django's language switch, which also remembers the choice of a signed-in person."""
    response = i18n.set_language(request)
    language = request.POST.get("language", "")
    if isinstance(request.user, User) and translation.check_for_language(language):
        operations.choose_language(user=request.user, language=language)
    return response


def _page(
    request: HttpRequest, *, new_token: str = "", errors: dict[str, str] | None = None, status: int = 200
) -> HttpResponse:
    user = _user(request)
    context = {
        "user": user,
        "tokens": queries.tokens_of(user),
        "new_token": new_token,
        "errors": errors or {},
    }
    return render(request, "account/index.html", context, status=status)


def _user(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        raise Http404
    return request.user
