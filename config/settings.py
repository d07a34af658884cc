"""Settings: everything comes from the environment, and every default is the embedded product.

Times are plain seconds. "Production" means `DEBUG=false`; the system checks in `config/checks.py`
refuse an unsafe one.
"""

import secrets
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from config import logs
from core import filesystem_broker

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "var"))).resolve()
DATA_DIR.mkdir(parents=True, exist_ok=True)
DEBUG = env.bool("DEBUG", default=False)
LOGGING = logs.configuration(debug=DEBUG)


def generated_secret(path: Path) -> str:
    """The secret kept in DATA_DIR, made on first use; two processes that start at once agree on it."""
    if not path.exists():
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        try:
            path.hardlink_to(draft)  # unlike a rename, this never replaces the winner's secret
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()


SECRET_KEY = env.str("SECRET_KEY", default="") or generated_secret(DATA_DIR / "secret_key")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
PUBLIC_BASE_URL = env.str("PUBLIC_BASE_URL", default=f"http://127.0.0.1:{env.int('PORT', default=8000)}")
CSRF_TRUSTED_ORIGINS = [PUBLIC_BASE_URL]

INSTALLED_APPS = [
    "core",
    "tombstones",
    "accounts",
    "billing",
    "files",
    "videos",
    "config.apps.ConfigConfig",
    "config.apps.StaffAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "csp",
]

MIDDLEWARE = [
    "core.requests.RequestIdMiddleware",
    "config.page_version.PageVersionMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.language.AccountLanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.shell.shell",
            ],
        },
    },
]

# --- Database -------------------------------------------------------------------------------------

DATABASES: dict[str, dict[str, Any]] = {
    "default": env.db_url("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'oncereel.sqlite3'}"),
}
ATOMIC_REQUESTS = False
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        # A transaction that begins as a reader and then writes fails at once with "database is locked";
        # one that begins as a writer waits its turn.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # FULL: a committed charge survives a power cut. recursive_triggers: INSERT OR REPLACE must not
        # slip past the triggers that make rows append-only.
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON;"
            "PRAGMA foreign_keys=ON;"
        ),
    }
    # A file, not memory: tests use several connections and real worker processes.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
else:
    DATABASES["default"]["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE", default=600)
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"]["OPTIONS"] = {
        "connect_timeout": 5,
        # For the statements of `core/statements.py` alone: the ORM's own are not bound by the server.
        "prepare_threshold": 2,
        # lock_timeout: a request that waits longer answers 503 and says so.
        # idle_in_transaction: frees the locks of a backend whose client is gone (see design of submit).
        "options": "-c lock_timeout=10s -c idle_in_transaction_session_timeout=60s",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": env.cache_url("CACHE_URL", default="locmemcache://oncereel")}

# --- People ---------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/videos/"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_FORMS = {
    "login": "accounts.forms.SignInForm",
    "signup": "accounts.forms.SignUpForm",
    "add_email": "accounts.forms.AddressForm",
    "change_password": "accounts.forms.ChangePasswordForm",
    "set_password": "accounts.forms.SetPasswordForm",
    "reset_password": "accounts.forms.ResetPasswordForm",
    "reset_password_from_key": "accounts.forms.ResetPasswordKeyForm",
    "reauthenticate": "accounts.forms.ConfirmForm",
}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
EMAIL_URL = env.str("EMAIL_URL", default="")
if EMAIL_URL:
    vars().update(env.email_url("EMAIL_URL"))
else:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if EMAIL_URL else "none"
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/5m/key",
    "signup": "20/m/ip",
    "reset_password": "20/m/ip,5/m/key",
}
ACCOUNT_SESSION_REMEMBER = True

# --- Languages, static files ----------------------------------------------------------------------

USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("简体中文"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)  # whitenoise warns of a missing folder, and warnings are errors in tests
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
MEDIA_ROOT = DATA_DIR / "files"
STORAGES = {
    "default": {
        "BACKEND": env.str("STORAGE_BACKEND", default="files.storage.DurableFolder"),
        "OPTIONS": env.json("STORAGE_OPTIONS", default={"location": str(MEDIA_ROOT)}),
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# --- Safety in the browser ------------------------------------------------------------------------

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "media-src": [SELF],
        "connect-src": [SELF],
        "font-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
CSRF_FAILURE_VIEW = "config.error_pages.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
HTTPS = PUBLIC_BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=HTTPS)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
# The largest upload is a 20 MB picture; JSON bodies have their own, smaller limit in the API.
DATA_UPLOAD_MAX_MEMORY_SIZE = 21 * 1024 * 1024

# --- API ------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.authentication.TokenAuthentication",
        "accounts.authentication.CookieAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["core.json_body.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "videos.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Oncereel",
    "DESCRIPTION": "Paid, asynchronous video generation that never charges twice.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # No validator: it would ask a third party for a badge. No try-out keys kept in the browser.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None, "persistAuthorization": False},
    "REDOC_DIST": "SIDECAR",
}

# --- Work in the background -----------------------------------------------------------------------

BROKER_URL = env.str("BROKER_URL", default="")
BROKER_VISIBILITY_TIMEOUT = env.int("BROKER_VISIBILITY_TIMEOUT", default=3600)  # Redis repeats a message
LEASE_SECONDS = env.int("LEASE_SECONDS", default=60)  # longer than connect 5 s + read 25 s of any submit
SUBMIT_CONNECT_SECONDS = env.float("SUBMIT_CONNECT_SECONDS", default=5.0)
SUBMIT_READ_SECONDS = env.float("SUBMIT_READ_SECONDS", default=25.0)
SWEEP_SECONDS = env.int("SWEEP_SECONDS", default=10)
UNKNOWN_REVIEW_AFTER = env.int("UNKNOWN_REVIEW_AFTER", default=1800)
UNKNOWN_GIVE_UP_AFTER = env.int("UNKNOWN_GIVE_UP_AFTER", default=86_400)
BILL_LAG_SECONDS = env.int(
    "BILL_LAG_SECONDS", default=3600
)  # a per-request bill may come this much after a job
SUBMIT_GIVE_UP_AFTER = env.int("SUBMIT_GIVE_UP_AFTER", default=7200)
MAX_JOB_SECONDS = env.int("MAX_JOB_SECONDS", default=0)  # 0: each model's own maximum
FIRST_POLL_SECONDS = env.float("FIRST_POLL_SECONDS", default=2.0)
SLOWEST_POLL_SECONDS = env.float("SLOWEST_POLL_SECONDS", default=15.0)
PROVIDER_PROBE_SECONDS = env.int("PROVIDER_PROBE_SECONDS", default=60)
RESULT_GIVE_UP_TRIES = env.int("RESULT_GIVE_UP_TRIES", default=8)
RESULT_GIVE_UP_SECONDS = env.int("RESULT_GIVE_UP_SECONDS", default=150)
QUARANTINE = env.bool("QUARANTINE", default=False)
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")  # lets a scraper on another machine read /metrics

# --- Money ----------------------------------------------------------------------------------------

BILLING_CURRENCY = env.str("BILLING_CURRENCY", default="USDC")
PRICE_MARKUP = env.str("PRICE_MARKUP", default="1.3")  # a decimal text; provider price × this

# --- Providers ------------------------------------------------------------------------------------

FAL_BASE_URL = env.str("FAL_BASE_URL", default="https://queue.fal.run")
FAL_API_URL = env.str("FAL_API_URL", default="https://api.fal.ai")
FAL_JWKS_URL = env.str("FAL_JWKS_URL", default="https://rest.fal.ai/.well-known/jwks.json")
FAL_KEY = env.str("FAL_KEY", default="")
RESULT_HOSTS = env.list("RESULT_HOSTS", default=[])

CELERY = {
    "task_serializer": "json",
    "accept_content": ["json"],
    "result_backend": None,
    "task_ignore_result": True,
    "task_acks_late": True,  # every task is safe to run twice
    "task_reject_on_worker_lost": True,
    "worker_prefetch_multiplier": 1,
    "worker_hijack_root_logger": False,
    "worker_send_task_events": False,
    "task_default_queue": "housekeeping",
    "broker_connection_retry_on_startup": True,
    "broker_transport_options": {
        "visibility_timeout": BROKER_VISIBILITY_TIMEOUT,
        "socket_timeout": 5,
        "socket_connect_timeout": 2,
    },
    **({"broker_url": BROKER_URL} if BROKER_URL else filesystem_broker.broker_settings(DATA_DIR)),
}
