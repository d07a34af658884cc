"""Addresses."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from accounts import pages as account_pages
from billing import api as billing_api
from billing import pages as billing_pages
from config import error_docs, health
from config.metrics import metrics
from videos import api as videos_api
from videos import files_api, hooks, pages

api: list[URLPattern | URLResolver] = [
    path("videos", videos_api.VideoList.as_view(), name="video-list"),
    path("videos/<str:client_id>", videos_api.VideoDetail.as_view(), name="video-detail"),
    path("videos/<str:client_id>/abandon", videos_api.VideoAbandon.as_view(), name="video-abandon"),
    path("videos/<str:client_id>/cancel", videos_api.VideoCancel.as_view(), name="video-cancel"),
    path("models", videos_api.ModelList.as_view(), name="model-list"),
    path("account", billing_api.AccountDetail.as_view(), name="account-detail"),
    path("account/transfers", billing_api.TransferList.as_view(), name="transfer-list"),
    path("files", files_api.FileList.as_view(), name="file-list"),
    path("files/<uuid:file_id>", files_api.FileDetail.as_view(), name="file-detail"),
    path("files/<uuid:file_id>/content", files_api.FileContent.as_view(), name="file-content"),
    path("schema", SpectacularAPIView.as_view(permission_classes=[AllowAny]), name="schema"),
    path("docs", SpectacularSwaggerSplitView.as_view(permission_classes=[AllowAny]), name="docs"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(url="/videos/"), name="front"),
    # Asked for by browsers on pages that name no icon of their own: admin, JSON.
    path("favicon.ico", RedirectView.as_view(url=static("icon.svg")), name="favicon"),
    path("api/", include(api)),
    path("hooks/<str:provider>/<str:key>", hooks.receive, name="webhook"),
    path("accounts/", include("allauth.urls")),
    path("i18n/setlang/", account_pages.set_language, name="set_language"),
    path("account/", account_pages.index, name="account"),
    path("account/tokens", account_pages.create_token, name="create-token"),
    path("account/tokens/<uuid:token_id>/revoke", account_pages.revoke_token, name="revoke-token"),
    path("videos/", pages.index, name="videos"),
    path("videos/<str:client_id>/", pages.detail, name="video"),
    path("videos/<str:client_id>/cancel", pages.cancel, name="cancel-video"),
    path("videos/<str:client_id>/delete", pages.delete, name="delete-video"),
    path("billing/", billing_pages.index, name="billing"),
    path("admin/", admin.site.urls),
    path("errors/", error_docs.index, name="errors"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
]

handler400 = "config.error_pages.bad_request"
handler403 = "config.error_pages.permission_denied"
handler404 = "config.error_pages.page_not_found"
handler429 = "config.error_pages.too_many_requests"
handler500 = "config.error_pages.server_error"
