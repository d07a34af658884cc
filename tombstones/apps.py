from django.apps import AppConfig


class TombstonesConfig(AppConfig):
    name = "tombstones"
