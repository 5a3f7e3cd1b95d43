"""Checks bodies of requests and replies against the types of the official SDKs.

Reads a JSON object per line from standard input:

    {"provider": "anthropic", "kind": "request", "body": {...}}

`provider` is `anthropic` or `openai`. `kind` is `request` or `reply`, or for batches `batch request`
(creates a batch), `batch` (its state), or `batch line`: with `anthropic` a line of the results, with
`openai` a line of the uploaded file, for which the SDK has types only for the parts. Unknown keys are
rejected at any depth in what is sent, but not in replies, because servers add their own.

Exit codes: 0 all are valid, 1 some are not (each error is printed), 77 the packages are not installed:

    pip install anthropic openai
"""

import json
import pkgutil
import importlib
import sys
import typing

try:
    import anthropic
    import anthropic.types
    import anthropic.types.messages
    import openai
    import openai.types
    import openai.types.chat
    import pydantic
    import typing_extensions
    from anthropic.types.messages.batch_create_params import BatchCreateParams as AnthropicBatch
    from openai.types.batch_create_params import BatchCreateParams as OpenaiBatch
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(77)


def forbid_unknown_keys(package):
    """Makes every dictionary type of a package reject unknown keys."""
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        module = importlib.import_module(found.name)
        for value in vars(module).values():
            if typing.is_typeddict(value):
                value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")


def walk(value):
    """Iterates over all parts of a value, because lazy iterables are validated only when iterated."""
    if isinstance(value, dict):
        for part in value.values():
            walk(part)
    elif not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        for part in value:
            walk(part)


class OpenaiLine(typing_extensions.TypedDict):
    """A line of a file of requests, as described in the OpenAI batch guide."""

    custom_id: str
    method: typing.Literal["POST"]
    url: typing.Literal["/v1/chat/completions"]
    body: CompletionCreateParamsNonStreaming


OpenaiLine.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")


def main():
    forbid_unknown_keys(anthropic.types)
    forbid_unknown_keys(openai.types)
    types = {
        ("anthropic", "request"): MessageCreateParamsNonStreaming,
        ("anthropic", "reply"): anthropic.types.Message,
        ("openai", "request"): CompletionCreateParamsNonStreaming,
        ("openai", "reply"): openai.types.chat.ChatCompletion,
        ("anthropic", "batch request"): AnthropicBatch,
        ("anthropic", "batch"): anthropic.types.messages.MessageBatch,
        ("anthropic", "batch line"): anthropic.types.messages.MessageBatchIndividualResponse,
        ("openai", "batch request"): OpenaiBatch,
        ("openai", "batch"): openai.types.Batch,
        ("openai", "batch line"): OpenaiLine,
    }
    checks = {key: pydantic.TypeAdapter(it) for key, it in types.items()}
    checked = failed = 0
    for line in sys.stdin:
        given = json.loads(line)
        checked += 1
        try:
            walk(checks[given["provider"], given["kind"]].validate_python(given["body"]))
        except pydantic.ValidationError as error:
            failed += 1
            print(f"{given['provider']} {given['kind']} {checked}: {error}")
    versions = f"anthropic {anthropic.__version__}, openai {openai.__version__}"
    print(f"{checked - failed} of {checked} are valid ({versions})")
    sys.exit(1 if failed else 0)


main()
