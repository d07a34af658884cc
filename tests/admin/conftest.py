"""Staff at the desk: one who may act, one who may only read, and a user who may do neither."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests import makers


@pytest.fixture
def ann(db: None) -> User:
    """Staff with every right, as `create_user --staff` makes them."""
    return User.objects.create_superuser(username="ann", email="ann@oncereel.example", password="x")


@pytest.fixture
def staff(ann: User) -> Client:
    client = Client()
    client.force_login(ann)
    return client


@pytest.fixture
def reader(db: None) -> Client:
    """Staff without any right beyond looking."""
    client = Client()
    client.force_login(User.objects.create_user(username="rea", password="x", is_staff=True))
    return client


@pytest.fixture
def user(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user(username="una", password="x"))
    return client


@pytest.fixture
def unknown_task(simulator: Any) -> tuple[makers.Owner, Any]:
    """A task whose submit answer was lost before the provider took it; nobody can find out by itself."""
    owner = makers.make_owner()
    simulator.add_fault({"drop_before_accept": "reset"}, times=1)
    client_id = makers.submit(owner, model=makers.BLIND_MODEL)
    makers.work(1)
    task = makers.task_of(owner, client_id)
    assert task.state == "unknown"
    return owner, task


@pytest.fixture
def completed_task(simulator: Any) -> tuple[makers.Owner, Any]:
    owner = makers.make_owner()
    client_id = makers.submit(owner)
    makers.work()
    task = makers.task_of(owner, client_id)
    assert task.state == "completed"
    return owner, task
