"""Celery's settings for each kind of broker: Redis or Valkey, and RabbitMQ with quorum queues.

Web processes (which only send) and workers must agree on the queue: both take it from here.
"""

from __future__ import annotations

from typing import Any

QUEUE = "compactions"
_AMQP = ("amqp", "amqps", "pyamqp")


def is_amqp(url: str) -> bool:
    """Whether the URL means RabbitMQ."""
    return url.partition("://")[0].lower() in _AMQP


def queue_settings(url: str) -> dict[str, Any]:
    """How the queue is declared. RabbitMQ: a quorum queue, which outlives a lost node of a cluster."""
    settings: dict[str, Any] = {"task_default_queue": QUEUE, "task_ignore_result": True}
    if is_amqp(url):
        settings |= {
            "task_default_queue_type": "quorum",
            "task_create_missing_queue_type": "quorum",
            "task_default_exchange_type": "topic",  # what Celery needs beside quorum queues for messages with a delay
            "worker_detect_quorum_queues": True,  # they know no global prefetch
        }
    return settings


def worker_options(url: str, *, redelivery: int) -> dict[str, Any]:
    """Transport options of a worker. `redelivery`: seconds until an unacknowledged message comes again.

    RabbitMQ redelivers when a connection is lost, and has a limit of its own (`consumer_timeout`, 30 minutes).
    """
    if is_amqp(url):
        return {"confirm_publish": True}
    return {"visibility_timeout": redelivery, "socket_keepalive": True, "health_check_interval": 25}


def sender_options(url: str, *, connect: float, answer: float) -> dict[str, Any]:
    """Transport options of a process that sends while a client waits: seconds to connect and to be answered."""
    once: dict[str, Any] = {"max_retries": 1, "interval_start": 0}
    if is_amqp(url):
        return {**once, "read_timeout": answer, "write_timeout": answer}
    return {**once, "socket_connect_timeout": connect, "socket_timeout": answer}
