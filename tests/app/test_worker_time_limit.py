"""The seconds of a request are counted over all steps, whatever the worker says of them."""

import pytest

from primaldepth.app.worker_time_limit import WorkerTimeLimit


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


def test_every_step_is_charged_to_the_same_request(clock):
    watch = WorkerTimeLimit(60.0, [7], clock)
    for _ in range(3):
        watch.turn_to([7])
        clock.now += 20.0
        assert watch.left == pytest.approx(100.0 + 60.0 - clock.now)
    watch.turn_to([7])
    assert watch.left == 0.0


def test_requests_of_a_batch_share_the_time_and_bring_what_they_have_left(clock):
    watch = WorkerTimeLimit(60.0, [1, 2], clock)
    watch.turn_to([1])
    clock.now += 50.0
    watch.turn_to([2])
    assert watch.left == 60.0
    watch.turn_to([1, 2])
    assert watch.left == 70.0
    clock.now += 10.0
    watch.finish(1)
    assert watch.left == 55.0


def test_a_pause_is_charged_to_nobody_until_its_end(clock):
    watch = WorkerTimeLimit(60.0, [1], clock)
    clock.now += 10.0
    watch.pause(300.0)
    clock.now += 100.0
    assert watch.left == 200.0
    watch.turn_to([1])
    assert watch.left == 50.0
    watch.pause(30.0)
    clock.now += 30.0 + 20.0
    assert watch.left == 30.0
    watch.pause(0.0)
    clock.now += 30.0
    assert watch.left == 0.0


@pytest.mark.parametrize("said", [(), (99,)], ids=["none", "another"])
def test_time_spent_on_nothing_is_charged_to_all(clock, said):
    watch = WorkerTimeLimit(60.0, [1, 2], clock)
    for _ in range(4):
        watch.turn_to(said)
        clock.now += 30.0
    assert watch.left == 0.0
