# One image for all processes: run it with the name of a line of Procfile (web, worker, beat).
FROM python:3.11-slim

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 DATA_DIR=/var/lib/oncereel BIND_HOST=0.0.0.0
WORKDIR /srv/oncereel

# First what changes rarely, so that an update of the code reuses this layer.
COPY requirements/base.txt requirements/base.txt
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements/base.txt

# The code belongs to root: a process that is taken over cannot change it. In a folder of its own, as the secret
# that Django makes at its first start must not be in an image.
COPY . .
RUN DATA_DIR="$(mktemp -d)" python manage.py compile_locale \
    && useradd --system --uid 10001 --home-dir "$DATA_DIR" --create-home oncereel

USER oncereel
VOLUME /var/lib/oncereel
EXPOSE 8000
# The process takes the entry point's place, so it gets SIGTERM itself, and drains.
ENTRYPOINT ["python", "-m", "config.procfile"]
CMD ["web"]
