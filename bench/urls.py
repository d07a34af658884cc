"""The product's addresses, and two views that do nothing behind the same middleware and token check."""

from django.http import HttpRequest, HttpResponse
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authentication import TokenAuthentication
from config import urls as product


def empty(request: HttpRequest) -> HttpResponse:
    """A plain view of Django: the token's check alone, which reads no more of a request than its headers."""
    found = TokenAuthentication().authenticate(request)  # type: ignore[arg-type]
    return HttpResponse(status=401 if found is None else 200)


class EmptyApi(APIView):
    """The same as a view of the API framework, which is what the product's views are."""

    def get(self, request: Request) -> Response:
        return Response({})


urlpatterns = [
    path("bench/empty", empty),
    path("bench/empty-api", EmptyApi.as_view()),
    *product.urlpatterns,
]
handler400 = product.handler400
handler403 = product.handler403
handler404 = product.handler404
handler429 = product.handler429
handler500 = product.handler500
