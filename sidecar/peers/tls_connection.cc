#include "sidecar/peers/tls_connection.h"

#include <cerrno>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "sidecar/peers/tcp.h"

namespace stoker::sidecar {

namespace {

// Read limit of one turn of the loop, so that one busy peer does not starve the others.
constexpr std::size_t kReadBytesPerTurn = std::size_t{256} << 10U;
constexpr std::size_t kWrittenBytesPerTurn = std::size_t{512} << 10U;

}  // namespace

Result<std::unique_ptr<TlsConnection>> TlsConnection::make(
    EventLoop& loop,
    UniqueFd socket,
    const TlsContext& context,
    std::shared_ptr<ChannelQueues> queues,
    const Settings& settings,
    Callbacks callbacks) {
    std::unique_ptr<TlsConnection> made{new TlsConnection(
        loop, std::move(socket), std::move(queues), settings, std::move(callbacks))};
    STOKER_TRY(SslPtr tls, make_tls(context, made->use_, settings.end));
    made->begin(std::move(tls), settings.handshake_max);
    return made;
}

TlsConnection::TlsConnection(
    EventLoop& loop,
    UniqueFd socket,
    std::shared_ptr<ChannelQueues> queues,
    const Settings& settings,
    Callbacks callbacks)
    : loop_(loop),
      socket_(std::move(socket)),
      use_{.socket = socket_.get()},
      queues_(std::move(queues)),
      callbacks_(std::move(callbacks)),
      phase_(settings.end == TlsEnd::kClient ? Phase::kConnecting : Phase::kHandshake),
      reader_(settings.payload_max, settings.pool),
      reads_(settings.end == TlsEnd::kClient),
      tasks_(loop),
      handshake_timer_(loop) {}

void TlsConnection::begin(SslPtr tls, Duration handshake_max) {
    tls_ = std::move(tls);
    loop_.watch(socket_.get(), [this](IoReady ready) { on_io(ready); });
    handshake_timer_.run_in(handshake_max, [this] {
        fail({ErrorCode::kDeadlineExceeded, "a peer did not finish its handshake in time"});
        wake_sidecar();
    });
    update_interest();
}

TlsConnection::~TlsConnection() {
    if (phase_ == Phase::kOpen) {
        use_.more_follows = false;
        SSL_shutdown(tls_.get());
        ERR_clear_error();
    }
    if (socket_.valid()) {
        loop_.forget(socket_.get());
    }
    give_back(0, writer_.clear());
    wake_sidecar();
}

void TlsConnection::on_io(IoReady ready) {
    use_.is_drained = use_.is_drained && !ready.readable;
    switch (phase_) {
        case Phase::kConnecting:
            connected();
            break;
        case Phase::kHandshake:
            wants_write_ = false;
            shake_hands();
            break;
        case Phase::kOpen:
            if (ready.readable && !may_read()) {
                // An event that we did not request is a hang-up: nothing more can be received or
                // sent.
                fail({ErrorCode::kUnavailable, "the connection to a peer broke"});
                break;
            }
            if (ready.writable) {
                write_some();
            }
            read_some();
            break;
        case Phase::kEnded:
            break;
    }
    turn_done();
}

void TlsConnection::connected() {
    if (auto status = connect_result(socket_.get()); !status) {
        fail(std::move(status).error());
        return;
    }
    phase_ = Phase::kHandshake;
    shake_hands();
}

void TlsConnection::shake_hands() {
    if (phase_ != Phase::kHandshake || !proceeds([&] { return SSL_do_handshake(tls_.get()); })) {
        return;
    }
    handshake_timer_.cancel();
    ERR_clear_error();
    auto peer = verified_peer(*tls_);
    if (!peer) {
        fail(std::move(peer).error());
        return;
    }
    phase_ = Phase::kOpen;
    deliver(*std::move(peer));
    if (callbacks_.on_open) {
        callbacks_.on_open();
    }
    write_some();
    read_some();
}

void TlsConnection::flush() {
    write_some();
    turn_done();
}

void TlsConnection::read_on() {
    reads_ = true;
    read_some();
    turn_done();
}

// Writes until a limit; then the socket is still writable, so the loop calls again.
void TlsConnection::write_some() {
    if (phase_ != Phase::kOpen) {
        return;
    }
    queues_->take_frames(writer_);
    wants_write_ = false;
    std::size_t total = 0;
    for (auto record = writer_.record(); !record.empty(); record = writer_.record()) {
        if (total >= kWrittenBytesPerTurn) {
            wants_write_ = true;
            break;
        }
        use_.more_follows = writer_.has_more();
        std::size_t written = 0;
        if (!proceeds(
                [&] { return SSL_write_ex(tls_.get(), record.data(), record.size(), &written); })) {
            break;
        }
        writer_.wrote(written);
        total += written;
    }
    give_back(total, writer_.take_spent());
}

void TlsConnection::read_some() {
    for (std::size_t total = 0; may_read();) {
        if (total >= kReadBytesPerTurn) {
            read_more_later();
            return;
        }
        const std::size_t received = receive();
        if (received == 0) {
            return;
        }
        total += received;
    }
}

// Posts a read: TLS may hold bytes that are no longer in the socket, which causes no event.
void TlsConnection::read_more_later() {
    if (!std::exchange(goes_on_, true)) {
        tasks_.post([this] {
            goes_on_ = false;
            read_some();
            turn_done();
        });
    }
}

// Receives bytes. Returns their number; 0: none for now, or the connection has ended.
std::size_t TlsConnection::receive() {
    const std::span<std::byte> room = reader_.room();
    std::size_t count = 0;
    if (!proceeds([&] { return SSL_read_ex(tls_.get(), room.data(), room.size(), &count); })) {
        return 0;
    }
    auto frame = reader_.filled(count);
    if (!frame) {
        fail(std::move(frame).error());
        return 0;
    }
    if (*frame) {
        deliver(**std::move(frame));
        reads_ = !queues_->must_stop_reading();
    }
    return count;
}

bool TlsConnection::may_read() const {
    return phase_ == Phase::kOpen && reads_;
}

// Runs a TLS operation. OpenSSL's error queue is empty before and after. False: the operation waits
// for the socket, or the connection has ended.
template <class Operation>
bool TlsConnection::proceeds(Operation operation) {
    errno = 0;
    const int result = operation();
    if (result == 1) {
        return true;
    }
    const int error_number = errno;
    const int error = SSL_get_error(tls_.get(), result);
    if (error == SSL_ERROR_WANT_WRITE) {
        wants_write_ = true;
    } else if (error != SSL_ERROR_WANT_READ) {
        fail(tls_error(*tls_, error, error_number));
    }
    return false;
}

void TlsConnection::deliver(ChannelEvent event) {
    must_wake_ = queues_->deliver(std::move(event)) || must_wake_;
}

void TlsConnection::give_back(std::size_t written, PayloadHolders spent) {
    must_wake_ = queues_->note_written(written, std::move(spent)) || must_wake_;
}

// Wakes the sidecar's loop; called once a turn, so that many small frames wake it once.
void TlsConnection::wake_sidecar() {
    if (std::exchange(must_wake_, false)) {
        callbacks_.on_event();
    }
}

void TlsConnection::turn_done() {
    update_interest();
    wake_sidecar();
}

void TlsConnection::fail(Error error) {
    if (phase_ == Phase::kEnded) {
        return;
    }
    if (!reader_.is_between_frames()) {
        error.message += ", in the middle of a frame";
    }
    phase_ = Phase::kEnded;
    handshake_timer_.cancel();
    loop_.forget(socket_.get());
    socket_.reset();
    callbacks_.on_end(error);
    deliver(std::move(error));
}

void TlsConnection::update_interest() {
    if (phase_ == Phase::kEnded) {
        return;
    }
    const bool connects = phase_ == Phase::kConnecting;
    const bool reads = phase_ == Phase::kHandshake || may_read();
    loop_.set_interest(socket_.get(), reads, connects || wants_write_);
}

}  // namespace stoker::sidecar
