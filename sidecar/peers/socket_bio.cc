#include "sidecar/peers/socket_bio.h"

#include <cerrno>

#include <openssl/bio.h>
#include <sys/socket.h>

namespace stoker::sidecar {

namespace {

SocketUse& use_of(BIO* bio) {
    return *static_cast<SocketUse*>(BIO_get_data(bio));
}

bool may_retry() {
    return errno == EAGAIN || errno == EINTR;
}

int write_to(BIO* bio, const char* bytes, int count) {
    const SocketUse& use = use_of(bio);
    BIO_clear_retry_flags(bio);
    const int flags = MSG_NOSIGNAL | (use.more_follows ? MSG_MORE : 0);
    const auto sent = ::send(use.socket, bytes, static_cast<std::size_t>(count), flags);
    if (sent < 0 && may_retry()) {
        BIO_set_retry_write(bio);
    }
    return static_cast<int>(sent);
}

// Reads from the socket. After a short read the socket was empty, so another call would only
// confirm that. A hang-up makes the socket readable.
int read_from(BIO* bio, char* bytes, int count) {
    SocketUse& use = use_of(bio);
    BIO_clear_retry_flags(bio);
    if (use.is_drained) {
        BIO_set_retry_read(bio);
        errno = EAGAIN;
        return -1;
    }
    const auto received = ::recv(use.socket, bytes, static_cast<std::size_t>(count), 0);
    use.is_drained = received > 0 && received < count;
    if (received < 0 && may_retry()) {
        BIO_set_retry_read(bio);
    }
    if (received == 0) {
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    }
    return static_cast<int>(received);
}

long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    switch (command) {
        case BIO_CTRL_FLUSH:
            return 1;
        case BIO_CTRL_EOF:
            return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
        default:
            return 0;
    }
}

// The method table: created once, kept until the program ends.
const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
        BIO_METHOD* fresh =
            BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket of a peer");
        if (fresh != nullptr) {
            BIO_meth_set_write(fresh, &write_to);
            BIO_meth_set_read(fresh, &read_from);
            BIO_meth_set_ctrl(fresh, &control);
        }
        return fresh;
    }();
    return made;
}

}  // namespace

BioPtr make_socket_bio(SocketUse& use) {
    BioPtr bio{method() == nullptr ? nullptr : BIO_new(method())};
    if (bio != nullptr) {
        BIO_set_data(bio.get(), &use);
        BIO_set_init(bio.get(), 1);
    }
    return bio;
}

}  // namespace stoker::sidecar
