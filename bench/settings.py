"""The product's settings with one address more: the empty views that a read is measured beside."""

from config.settings import *  # noqa: F403  (every setting, as in production)

ROOT_URLCONF = "bench.urls"
