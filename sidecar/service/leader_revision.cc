// The part of Leader that lets sessions wait: for the listing, and for the pin of our attempt.
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/log/log.h"
#include "sidecar/service/leader.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kListingInterval = std::chrono::seconds{1};

}  // namespace

// The listing is served, or thrown away for another one, or waits for the pin.
void Leader::settle_revision() {
    parts_.loop.cancel(gate_timer_);
    const domain::RevisionId revision = prepared_->manifest->view().revision();
    const TimePoint now = parts_.loop.now();
    switch (gate_.judge(revision, !keep_revision_, now)) {
        case RevisionGate::Verdict::kWait:
            gate_timer_ = parts_.loop.run_at(gate_.waits_until(), [this] { settle_revision(); });
            return;
        case RevisionGate::Verdict::kListAgain:
            list_again();
            return;
        case RevisionGate::Verdict::kGo:
        case RevisionGate::Verdict::kChanged:
            begin_serving(std::move(*std::exchange(prepared_, std::nullopt)));
            if (gate_.has_changed()) {
                callbacks_.changed();
            }
            return;
    }
}

void Leader::list_again() {
    log::warning(
        "another rank listed another revision; listing again",
        {{"dataset", config_.name},
         {"revision", domain::to_string(prepared_->manifest->view().revision())}});
    // Nothing was stored yet: what cannot be sealed now is read again when it is opened.
    [[maybe_unused]] const auto closed = prepared_->store->close();
    prepared_.reset();
    list_again_ = true;
    prepare();
}

void Leader::on_pin() {
    if (prepared_) {
        settle_revision();
        return;
    }
    if (state_ == LeaderState::kServing) {
        for (const ConnectionId id : std::exchange(waiting_, {})) {
            admit(*sessions_.at(id));
        }
    }
}

const domain::ManifestView* Leader::manifest() const {
    const MappedManifest* manifest = prepared_ ? prepared_->manifest.get() : manifest_.get();
    return manifest == nullptr ? nullptr : &manifest->view();
}

// Other pods' sidecars ask gates of their own.
void Leader::admit(Session& session) {
    const bool may_read = session.hello().relay ||
                          gate_.judge(manifest_->view().revision(), false, parts_.loop.now()) ==
                              RevisionGate::Verdict::kGo;
    if (may_read) {
        welcome(session);
        return;
    }
    waiting_.insert(session.id());
    parts_.loop.cancel(listing_timer_);
    tell_listing();
}

void Leader::tell_listing() {
    for (const ConnectionId id : waiting_) {
        sessions_.at(id)->send_listing(*objects_listed_);
    }
    if (state_ == LeaderState::kPreparing && !prepared_) {
        watch_listing();
    }
    listing_timer_ =
        parts_.loop.run_at(parts_.loop.now() + kListingInterval, [this] { tell_listing(); });
}

// An origin that accepts a request and never answers must not look like a long listing.
void Leader::watch_listing() {
    const Duration silence = listing_watch_.look(parts_.loop.now(), *objects_listed_);
    if (silence == Duration{}) {
        return;
    }
    const bool is_news = last_error_.code != ErrorCode::kDeadlineExceeded;
    last_error_ = {
        ErrorCode::kDeadlineExceeded,
        fmt::format(
            "{} has said nothing for {} s while it is listed, after {} objects",
            origin_.describe(),
            std::chrono::duration_cast<std::chrono::seconds>(silence).count(),
            objects_listed_->load())};
    if (is_news) {
        log::warning(
            "the listing stands still",
            {{"dataset", config_.name}, {"error", last_error_.message}});
    }
}

}  // namespace stoker::sidecar
