"""How gunicorn serves the web process: `gunicorn --no-control-socket --config config/gunicorn.py …`.

The control socket, which gunicorn opens in the home folder, can only be switched off on the command line.
"""

import os

from config.logs import configuration

# Loopback by default: a first run prints passwords of demo users. A container sets BIND_HOST=0.0.0.0.
bind = f"{os.environ.get('BIND_HOST', '127.0.0.1')}:{os.environ.get('PORT', '8000')}"

workers = int(os.environ.get("WEB_WORKERS", "2"))
threads = int(os.environ.get("WEB_THREADS", "8"))  # a request waits for the database, hardly ever for the CPU
worker_class = "gthread"

limit_request_line = 8190  # bytes; a bulk read may name 100 ids of 64 characters

timeout = 60  # seconds; longer than the lock and statement limits of the database, which answer with a 503
graceful_timeout = 25  # seconds for running requests on SIGTERM; a deploy must not cut off a commit's answer
keepalive = 5  # seconds; a polling page asks every few seconds and need not connect anew

# Recycling bounds what a leak in any dependency can cost; the jitter keeps workers from leaving together.
max_requests = 10_000
max_requests_jitter = 1_000

# A heartbeat file on a slow disk blocks a worker; Linux has a folder in memory, elsewhere the default does.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None

# Without a forwarder named here nobody's X-Forwarded-* headers are believed but loopback's.
forwarded_allow_ips = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")

accesslog = os.environ.get("WEB_ACCESS_LOG")  # "-" for standard output; off, as the application logs requests
errorlog = "-"

# One kind of line for everything: the master's own, the workers' and the application's.
logconfig_dict = configuration(debug=os.environ.get("DEBUG", "").lower() in ("1", "true", "yes", "on"))
if not accesslog:  # gunicorn would write the lines all the same, as a logging configuration is given
    silent = {"handlers": [], "level": "WARNING", "propagate": False}
    logconfig_dict["loggers"] = {**logconfig_dict.get("loggers", {}), "gunicorn.access": silent}
