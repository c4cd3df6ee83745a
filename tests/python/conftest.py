import lamina
import models
import pytest


@pytest.fixture(scope="session")
def relu():
    return lamina.load(models.relu(), threads=1)


@pytest.fixture(scope="session")
def sums():
    return lamina.load(models.sums(), threads=1)


@pytest.fixture(scope="session")
def endless():
    return lamina.load(models.endless(), threads=1)
