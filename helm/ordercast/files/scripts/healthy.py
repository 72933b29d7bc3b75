"""Is the process of this pod healthy? Over TLS, for a probe: the kubelet has no certificate.

`python healthy.py HOST:PORT NAME`: NAME is what the certificate of the process says, and may be a variable. Ends
with 0 if it is.
"""

import os
import sys
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

FOLDER = Path("/etc/ordercast/tls")
ANSWER_S_MAX = 5.0


def is_healthy(address: str, name: str, folder: Path = FOLDER) -> bool:
    """Shows the certificate of the pod itself: its authority signed it."""
    ca, key, cert = ((folder / file).read_bytes() for file in ("ca.crt", "tls.key", "tls.crt"))
    credentials = grpc.ssl_channel_credentials(ca, key, cert)
    with grpc.secure_channel(address, credentials, [("grpc.ssl_target_name_override", name)]) as channel:
        request = health_pb2.HealthCheckRequest(service="")
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=ANSWER_S_MAX)
        except grpc.RpcError as error:
            print(f"{address} does not answer: {error.details()}", file=sys.stderr)
            return False
    return answer.status == health_pb2.HealthCheckResponse.SERVING


if __name__ == "__main__":
    sys.exit(0 if is_healthy(sys.argv[1], os.path.expandvars(sys.argv[2])) else 1)
