"""In the place of the operator's webhook: an HTTPS server with the certificate of /certificate. It accepts connections, and
answers no request."""

from cues import emit  # first, so that SIGTERM ends this program; pylint: disable=wrong-import-order

import argparse
import socket
import ssl
import threading


def serve(context, connection):
    try:
        with context.wrap_socket(connection, server_side=True) as stream:
            stream.recv(1)
            emit("request")
            threading.Event().wait()
    except OSError as error:
        emit("refused", error=str(error))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=9444)
    options = parser.parse_args()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/certificate/tls.crt", "/certificate/tls.key")
    listener = socket.create_server(("", options.port))
    emit("start")
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(context, connection), daemon=True).start()


if __name__ == "__main__":
    main()
