"""What botocore raises, as the errors of ThunderAgent: each says whose turn it is and what to do."""

from __future__ import annotations

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    TokenRetrievalError,
)

from thunderagent.errors import (
    IndexMissing,
    InvalidSettings,
    StoreAccessDenied,
    StoreError,
    StoreRejected,
    StoreThrottled,
    StoreUnavailable,
    TableMissing,
    ThunderAgentError,
)

CONDITION_FAILED = "ConditionalCheckFailedException"

_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "Throttling",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "SlowDown",
    }
)
_PASSING = frozenset({"TransactionConflictException", "ReplicatedWriteConflictException", "TransactionInProgressException"})
"""Another write of the item is under way; the same request may go through a moment later."""

_ACCESS = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "ExpiredToken",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "UnrecognizedClientException",
    }
)
# DynamoDB calls a query of an index that is missing or still being built invalid; moto says that a resource is not found.
_MISSING = frozenset({"ValidationException", "ResourceNotFoundException"})
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, TokenRetrievalError)


def translate(error: Exception, operation: str, table: str) -> ThunderAgentError:
    """The ThunderAgent error for what a call of ``operation`` on ``table`` raised. Condition failures do not come here."""
    if isinstance(error, ClientError):
        return _translate_reply(error, operation, table)
    if isinstance(error, _NO_CREDENTIALS):
        return StoreAccessDenied(f"No AWS credentials for {operation} on {table}: {error}", operation=operation)
    if isinstance(error, NoRegionError):
        return InvalidSettings("No AWS region is set. Set AWS_REGION, or --region, or an endpoint with a region.")
    if isinstance(error, ParamValidationError):
        return StoreRejected(f"{operation} on {table} was not sent: {error}", operation=operation)
    if isinstance(error, BotoCoreError):
        return StoreUnavailable(f"{operation} on {table} got no reply: {error}", operation=operation)
    return StoreUnavailable(f"{operation} on {table} failed: {type(error).__name__}: {error}", operation=operation)


def is_throttling(code: str) -> bool:
    """Whether a reply with this code refuses a request for the rate or the throughput."""
    return code in _THROTTLED


def reply_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _translate_reply(error: ClientError, operation: str, table: str) -> StoreError:
    code = reply_code(error)
    text = str(error.response.get("Error", {}).get("Message", "")) or code
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if is_throttling(code):
        return StoreThrottled(f"DynamoDB throttled {operation} on {table}: {text}", operation=operation)
    if code in _ACCESS:
        return StoreAccessDenied(f"{operation} on {table} is not allowed ({code}): {text}", operation=operation)
    if operation == "Query" and code in _MISSING and "index" in text.lower():
        return IndexMissing(f"{operation} on {table}: {text} See `thunderagent table check`.", operation=operation)
    if code == "ResourceNotFoundException":
        words = text.removesuffix(".")
        return TableMissing(
            f"There is no table {table} here: {words}. Create it with `thunderagent table create`.", operation=operation
        )
    if code in _PASSING:
        return StoreUnavailable(f"{operation} on {table} met another write of the item ({code}): {text}", operation=operation)
    if code == "ValidationException" or (400 <= status < 500 and not _is_unnamed(code)):
        return StoreRejected(f"DynamoDB refused {operation} on {table} ({code}): {text}", operation=operation)
    return StoreUnavailable(f"{operation} on {table} failed with HTTP {status} ({code}): {text}", operation=operation)


def _is_unnamed(code: str) -> bool:
    """Whether a reply names no error, so that botocore takes the HTTP status.

    A proxy has spoken then, or a server that gives up a connection: nothing has been refused for good.
    """
    return not code or code.isdecimal()
