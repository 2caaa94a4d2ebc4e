import threading
import time

import numpy as np
import pytest

from biastransfer.prefetch import ahead


def alive():
    return [thread for thread in threading.enumerate() if thread.name == "ahead"]


def test_items_come_in_order_and_random_numbers_stay_what_they_were():
    def draws(rng):
        for _ in range(50):
            yield rng.random(3)

    expected = np.array(list(draws(np.random.default_rng(1))))
    with ahead(draws(np.random.default_rng(1)), depth=2) as items:
        assert np.array_equal(np.array(list(items)), expected)
    assert alive() == []


def test_no_more_than_depth_items_wait():
    made = []

    def items():
        for k in range(10):
            made.append(k)
            yield k

    with ahead(items(), depth=2) as ready:
        assert next(ready) == 0
        while len(made) < 4:
            time.sleep(0.01)
        time.sleep(0.1)
        assert made == [0, 1, 2, 3]  # one used, two that wait, one in hand
    assert alive() == []


def test_an_error_comes_where_its_item_would():
    def items():
        yield 1
        raise OSError("unreadable")

    with ahead(items()) as ready:
        assert next(ready) == 1
        with pytest.raises(OSError, match="unreadable"):
            next(ready)
    assert alive() == []


def test_leaving_early_ends_the_thread():
    def endless():
        while True:
            yield 0

    def used():
        with ahead(endless()) as ready:
            raise ArithmeticError(next(ready))

    with pytest.raises(ArithmeticError):
        used()
    assert alive() == []


def test_the_next_item_is_made_while_one_is_used():
    begun = threading.Event()

    def items():
        yield 0
        begun.set()
        yield 1

    with ahead(items(), depth=1) as ready:
        assert next(ready) == 0
        assert begun.wait(timeout=20)
        assert next(ready) == 1
