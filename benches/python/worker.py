"""A worker of `flo bench steps` in Python: plain grpcio on the files of proto/flotilla/v1.

Its stubs are made by `python -m grpc_tools.protoc` and lie in the module path. It prints `ready` once tasks may
come, and ends on SIGTERM.
"""

import argparse
import asyncio
import json
import secrets
import signal
import time

import grpc
from flotilla.v1 import action_pb2, action_pb2_grpc, worker_pb2, worker_pb2_grpc

HEARTBEAT_INTERVAL_S = 30
"""How often the worker tells that it lives; the cluster waits for 90 s."""

RETRY_DELAY_S = 0.2
"""How long to wait before the next node is tried."""


class Refused(Exception):
    """The cluster does not accept what the worker did."""


def step(task):
    """Counts the number up, and says when, in microseconds: the workers of `flo bench steps` do the same."""
    number = json.loads(task.input)["n"] + 1
    return json.dumps({"n": number, "at": time.time_ns() // 1000}).encode()


class Worker:
    """One process in the cluster's registry."""

    def __init__(self, arguments):
        self.namespace = arguments.namespace
        self.actions = arguments.actions.split(",")
        self.concurrency = arguments.concurrency
        self.worker_id = f"python-{secrets.token_hex(4)}"
        self.incarnation = secrets.randbits(63)
        self.is_announced = False

    async def register(self, channel):
        """Registers the actions that are missing, and the worker."""
        actions = action_pb2_grpc.ActionServiceStub(channel)
        for name in self.actions:
            await actions.RegisterAction(
                action_pb2.RegisterActionRequest(
                    namespace=self.namespace,
                    name=name,
                    type=action_pb2.ACTION_TYPE_USER,
                    only_if_missing=True,
                )
            )
        processes = [
            worker_pb2.Process(name=name, kind=worker_pb2.PROCESS_KIND_ACTION) for name in self.actions
        ]
        await worker_pb2_grpc.WorkerServiceStub(channel).Register(
            worker_pb2.RegisterRequest(
                namespace=self.namespace,
                worker_id=self.worker_id,
                incarnation=self.incarnation,
                worker_type=worker_pb2.WORKER_TYPE_ACTION,
                max_concurrency=self.concurrency,
                processes=processes,
            )
        )

    async def work(self, channel):
        """Takes tasks from the leader until the stream ends."""
        stream = Stream(worker_pb2_grpc.WorkerServiceStub(channel).Stream())
        await stream.say(
            hello=worker_pb2.WorkerHello(
                namespace=self.namespace,
                worker_id=self.worker_id,
                incarnation=self.incarnation,
                actions=self.actions,
                supports_batches=True,
            )
        )
        heartbeat = asyncio.create_task(self.keep_alive(stream))
        try:
            await self.take_tasks(stream)
        finally:
            heartbeat.cancel()

    async def take_tasks(self, stream):
        """Runs tasks as they come: a step ends immediately, so every slot is free again."""
        received = offered = 0
        async for message in stream.call:
            kind = message.WhichOneof("message")
            if kind == "tasks":
                tasks = message.tasks.tasks
                received += len(tasks)
                completions = [
                    worker_pb2.TaskCompletion(task_token=task.task_token, output=step(task)) for task in tasks
                ]
                await stream.complete(completions)
            elif kind == "results":
                for result in message.results.results:
                    if result.result.HasField("error"):
                        raise Refused(result.result.error.message)
            elif kind == "hello_ok" and not self.is_announced:
                self.is_announced = True
                print("ready", flush=True)
            elif kind == "draining":
                raise Refused("somebody drains the worker")
            # Half of the slots may be on their way back before that is worth a message.
            if offered - received <= self.concurrency // 2:
                offered = received + self.concurrency
                await stream.say(slots=worker_pb2.WorkerSlots(max_tasks_total=offered))

    async def keep_alive(self, stream):
        """Says at times that the worker lives."""
        while True:
            await asyncio.sleep(HEARTBEAT_INTERVAL_S)
            await stream.say(heartbeat=worker_pb2.WorkerLoad(current_load=0))


class Stream:
    """What the worker says, numbered and one after another."""

    def __init__(self, call):
        self.call = call
        self.sequence = 0
        self.turn = asyncio.Lock()

    async def say(self, **message):
        """Sends one message."""
        async with self.turn:
            await self.write(1, message)

    async def complete(self, completions):
        """Sends completions in one message, in which each has its own number."""
        async with self.turn:
            batch = worker_pb2.TaskCompletions(completions=completions)
            await self.write(len(completions), {"completions": batch})

    async def write(self, count, message):
        """Sends a message that takes `count` numbers."""
        first = self.sequence + 1
        self.sequence += count
        await self.call.write(worker_pb2.WorkerMessage(sequence=first, **message))


def leader(error):
    """Where the leader serves, if the node that refused knows it."""
    for name, value in [*(error.initial_metadata() or ()), *(error.trailing_metadata() or ())]:
        if name == "flo-leader":
            return value
    return None


async def live(arguments):
    """Works at the leader, wherever it is."""
    worker = Worker(arguments)
    endpoints = arguments.endpoints.split(",")
    is_registered = False
    while True:
        async with grpc.aio.insecure_channel(endpoints[0]) as channel:
            try:
                if not is_registered:
                    await worker.register(channel)
                    is_registered = True
                await worker.work(channel)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                # The leader first, else the next node.
                endpoints = endpoints[1:] + endpoints[:1]
                found = leader(error)
                if found in endpoints:
                    endpoints.remove(found)
                    endpoints.insert(0, found)
        await asyncio.sleep(RETRY_DELAY_S)


async def main():
    """Lives until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", required=True, help="nodes as HOST:PORT, with commas between")
    parser.add_argument("--actions", required=True, help="actions to serve, with commas between")
    parser.add_argument("--namespace", default="", help="the namespace [default: default]")
    parser.add_argument("--concurrency", type=int, default=256, help="how many tasks at a time")
    arguments = parser.parse_args()
    life = asyncio.create_task(live(arguments))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, life.cancel)
    try:
        await life
    except asyncio.CancelledError:
        pass


if __name__ == "__main__":
    asyncio.run(main())
