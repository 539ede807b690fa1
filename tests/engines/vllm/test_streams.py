"""Streams: requests of several turns, which pause with their memory between them."""

from pathlib import Path

from tests.engines.vllm.real import Driver, Request, RequestStatus, make_scheduler

PAUSED = RequestStatus.WAITING_FOR_STREAMING_REQ


def until_it_pauses(driver: Driver, stream: Request) -> None:
    while stream.status != PAUSED:
        assert driver.advance()


def test_a_stream_that_goes_on_starts_where_there_is_room_for_it(model: Path) -> None:
    """It comes from another queue of vLLM's; 16 blocks, of which both may take 11."""
    driver = Driver(make_scheduler(model, justitia={"admission": "max"}, blocks=17))
    stream = driver.add("stream", 64, 2, resumable=True)
    until_it_pauses(driver, stream)
    driver.add("other", 64, 288)
    driver.advance()
    driver.add("stream", 64, 200, resumable=True)
    driver.advance()
    assert list(driver.batches[-1]) == ["other"]
    until_it_pauses(driver, stream)
    assert driver.preemptions == 0
    assert "other" in driver.finishes


def test_a_turn_may_end_while_its_stream_is_preempted(model: Path) -> None:
    """By an output that was on its way. vLLM takes the stream out of its queues then.

    So it would wait for ever, or be next in line and not be found.
    """
    driver = Driver(make_scheduler(model, asynchronous=True), depth=2)
    stream = driver.add("stream", 40, 5, resumable=True)
    while stream.num_output_tokens < 2:
        driver.advance()
    assert stream.num_in_flight_tokens
    driver.scheduler.running.remove(stream)
    driver.scheduler._preempt_request(stream, 0.0)
    driver._ends["stream"] = stream.num_output_tokens + 1
    driver.add("other", 10, 5)
    until_it_pauses(driver, stream)
    driver.add("stream", 5, 3, resumable=True)
    assert stream.status == RequestStatus.WAITING
    until_it_pauses(driver, stream)
    driver.add("stream", 1, 1)  # says that there are no more turns
    driver.run()
    assert "other" in driver.finishes
    assert not driver.live()
    assert len(driver.ours.waiting) == len(driver.ours.agents) == 0
