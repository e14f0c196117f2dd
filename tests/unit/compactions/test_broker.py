from __future__ import annotations

import pytest
from celery import Celery

from compaction_service.compactions import broker


@pytest.mark.parametrize("url", ["redis://h:1/0", "rediss://h:1/0"])
def test_redis__redelivery_is_as_configured__and_a_sender_does_not_wait(url: str) -> None:
    assert broker.worker_options(url, redelivery=900)["visibility_timeout"] == 900
    assert broker.sender_options(url, connect=0.5, answer=1)["socket_timeout"] == 1
    assert "task_default_queue_type" not in broker.queue_settings(url)


@pytest.mark.parametrize("url", ["amqp://u:p@h//", "amqps://h//"])
def test_rabbitmq__queue_is_a_quorum_queue_for_senders_and_workers(url: str) -> None:
    app = Celery("test", broker=url)
    app.conf.update(**broker.queue_settings(url))
    for queue in (app.amqp.queues[broker.QUEUE], app.amqp.queues.new_missing("default")):
        assert queue.queue_arguments == {"x-queue-type": "quorum"}
        assert queue.durable
    assert broker.worker_options(url, redelivery=900) == {"confirm_publish": True}
    assert "socket_timeout" not in broker.sender_options(url, connect=0.5, answer=1)
