"""The staff's pages of tasks, attempts and providers; importing registers them."""

from videos.admin.attempts import AttemptAdmin, OrphanJobAdmin
from videos.admin.providers import ProviderStatusAdmin
from videos.admin.tasks import VideoTaskAdmin

__all__ = ["AttemptAdmin", "OrphanJobAdmin", "ProviderStatusAdmin", "VideoTaskAdmin"]
