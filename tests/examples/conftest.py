from collections.abc import Iterator

import pytest

from tests.product_process import ProductProcess


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProductProcess]:
    """One running product for the client and the guide."""
    with ProductProcess(tmp_path_factory.mktemp("product")) as running:
        yield running
