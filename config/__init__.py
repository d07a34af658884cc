"""Settings, addresses, the Celery application, checks."""
