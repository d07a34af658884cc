"""Shapes of the API for its generated description (`/api/schema`). They document; `requests` validates."""

from rest_framework import serializers


class Charge(serializers.Serializer):
    state = serializers.ChoiceField(
        choices=["not_charged", "charged", "settled", "partially_refunded", "refunded"]
    )
    amount = serializers.CharField(help_text="decimal text with six places")
    refunded = serializers.CharField(help_text="decimal text with six places")
    currency = serializers.CharField()


class Message(serializers.Serializer):
    code = serializers.CharField(help_text="stable; the text may change")
    text = serializers.CharField(help_text="what happened, and what happened to the money")


class Range(serializers.Serializer):
    low = serializers.IntegerField(help_text="seconds")
    high = serializers.IntegerField(help_text="seconds")


class TaskError(serializers.Serializer):
    code = serializers.CharField()
    detail = serializers.CharField()
    retryable = serializers.BooleanField(help_text="the same order may be placed anew, under a new id")


class Cancel(serializers.Serializer):
    possible = serializers.BooleanField()
    refund = serializers.CharField(allow_null=True)


class Result(serializers.Serializer):
    file = serializers.UUIDField()
    url = serializers.CharField()


class Submission(serializers.Serializer):
    id = serializers.CharField(min_length=8, max_length=64, help_text="yours; unique for ever")
    model = serializers.CharField()
    prompt = serializers.CharField(max_length=4000)
    seconds = serializers.IntegerField(required=False)
    resolution = serializers.CharField(required=False)
    aspect_ratio = serializers.CharField(required=False)
    audio = serializers.BooleanField(required=False)
    seed = serializers.IntegerField(required=False)
    image_file = serializers.UUIDField(required=False)
    image_url = serializers.URLField(required=False)
    max_price = serializers.CharField(required=False, help_text="decimal text; more is refused, not charged")


class Chip(serializers.Serializer):
    tone = serializers.CharField()
    shape = serializers.CharField()
    word = serializers.CharField(help_text="in the reader's language")
    is_solid = serializers.BooleanField()
    progress = serializers.IntegerField(allow_null=True)


class Chips(serializers.Serializer):
    """How pages mark the task: what became of the video, and of the money."""

    video = Chip()
    money = Chip()


class Video(serializers.Serializer):
    id = serializers.CharField()
    state = serializers.ChoiceField(choices=["submitting", "unknown", "processing", "completed", "failed"])
    submission_state = serializers.ChoiceField(choices=["submitting", "unknown", "accepted", "rejected"])
    phase = serializers.ChoiceField(choices=["queued", "running", "storing"], allow_null=True)
    progress = serializers.IntegerField(allow_null=True)
    queue_position = serializers.IntegerField(allow_null=True)
    eta = Range(allow_null=True)
    model = serializers.CharField()
    prompt = serializers.CharField()
    seconds = serializers.IntegerField()
    resolution = serializers.CharField()
    aspect_ratio = serializers.CharField()
    audio = serializers.BooleanField()
    seed = serializers.IntegerField(allow_null=True)
    charge = Charge()
    message = Message()
    error = TaskError(allow_null=True)
    cancel = Cancel()
    result = Result(allow_null=True)
    late = serializers.BooleanField()
    chips = Chips()
    created_at = serializers.DateTimeField()
    accepted_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    poll_after_seconds = serializers.IntegerField(allow_null=True)


class VideoPage(serializers.Serializer):
    results = Video(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class AbsentVideo(serializers.Serializer):
    id = serializers.CharField()
    code = serializers.ChoiceField(choices=["not_received", "deleted", "abandoned"])
    charge = Charge()
    message = Message()


class Price(serializers.Serializer):
    seconds = serializers.IntegerField()
    resolution = serializers.CharField()
    audio = serializers.BooleanField()
    price = serializers.CharField()


class Model(serializers.Serializer):
    model = serializers.CharField()
    provider = serializers.CharField()
    input = serializers.ChoiceField(choices=["text", "image"])
    seconds = serializers.ListField(child=serializers.IntegerField())
    resolutions = serializers.ListField(child=serializers.CharField())
    aspect_ratios = serializers.ListField(child=serializers.CharField())
    audio = serializers.BooleanField()
    default = serializers.DictField()
    prices = Price(many=True)
    currency = serializers.CharField()
    available = serializers.BooleanField()
    usual_seconds = Range()
    charges_on_refusal = serializers.BooleanField()
    max_prompt = serializers.IntegerField(help_text="code points")


class ModelPage(serializers.Serializer):
    results = Model(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class Problem(serializers.Serializer):
    """RFC 9457. `charge` is there on everything about a known id."""

    type = serializers.URLField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    message = Message()
    charge = Charge(required=False)
    field = serializers.CharField(required=False)


class File(serializers.Serializer):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["upload", "result"])
    content_type = serializers.CharField()
    size = serializers.IntegerField(help_text="bytes")
    sha256 = serializers.CharField()
    task = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class FilePage(serializers.Serializer):
    results = File(many=True)
    next_cursor = serializers.CharField(allow_null=True)
