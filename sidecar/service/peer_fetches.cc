#include "sidecar/service/peer_fetches.h"

#include <algorithm>
#include <utility>

#include "sidecar/service/peer_link.h"

namespace stoker::sidecar {

using domain::SampleIndex;

namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds{50};

}  // namespace

PeerFetches::PeerFetches(EventLoop& loop, PeerNetwork& network, PeerSelf self, Callbacks callbacks)
    : loop_(loop),
      network_(network),
      self_(std::move(self)),
      callbacks_(std::move(callbacks)),
      timer_(loop),
      tasks_(loop) {}

PeerFetches::~PeerFetches() = default;

void PeerFetches::set_group(
    std::shared_ptr<const Placement> placement, const std::vector<control::PeerMember>& members) {
    placement_ = std::move(placement);
    auto old = std::exchange(links_, {});
    for (const control::PeerMember& member : members) {
        if (placement_ == nullptr || member.node == self_.hello.node) {
            links_.push_back(nullptr);
            continue;
        }
        const auto same = std::ranges::find_if(
            old, [&](const auto& link) { return link != nullptr && link->member() == member; });
        links_.push_back(
            same != old.end() ? std::move(*same) : std::make_unique<PeerLink>(*this, member));
    }
    for (const auto& link : old) {
        if (link != nullptr) {
            link->fall(kRestMin);
        }
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
        if (links_[i] != nullptr) {
            links_[i]->redirect([&](SampleIndex sample) {
                return !placement_->is_own(sample) && placement_->owner(sample) != i;
            });
        }
    }
}

PeerLink* PeerFetches::owner(SampleIndex sample) const {
    const std::size_t owner = placement_ == nullptr ? 0 : placement_->owner(sample);
    return owner < links_.size() ? links_[owner].get() : nullptr;
}

// The node that owned the own sample before this node joined, and others that turned out to have
// joined, too.
PeerLink* PeerFetches::former_owner(SampleIndex sample) const {
    const auto former = placement_->runner_up(sample, [this](std::size_t i) {
        return links_[i] != nullptr && links_[i]->take_overs().may_ask();
    });
    return former ? links_[*former].get() : nullptr;
}

PeerLink* PeerFetches::link_to(const std::string& node) const {
    const auto found = std::ranges::find_if(
        links_, [&](const auto& link) { return link != nullptr && link->member().node == node; });
    return found == links_.end() ? nullptr : found->get();
}

bool PeerFetches::may_ask(SampleIndex sample) const {
    const PeerLink* const link = owner(sample);
    return link != nullptr && link->may_ask();
}

void PeerFetches::note_not_asked(SampleIndex sample) {
    const PeerLink* const link = owner(sample);
    ++(link != nullptr && link->is_stalled() ? totals_.hedges : totals_.failures);
}

bool PeerFetches::takes_over(SampleIndex sample) {
    PeerLink* const former = is_own(sample) ? former_owner(sample) : nullptr;
    if (former == nullptr || (sample == asker_.second && former->member().node == asker_.first)) {
        return false;
    }
    look_soon();  // may_take_over() may begin a connection
    return former->may_take_over();
}

bool PeerFetches::ask(SampleIndex sample) {
    const bool take_over = is_own(sample);
    PeerLink* const link = take_over ? former_owner(sample) : owner(sample);
    look_soon();
    if (link == nullptr || !link->ask(sample, take_over)) {
        return false;
    }
    flush_soon();
    return true;
}

void PeerFetches::tell_all(const PeerMessage& message) {
    const auto head = std::make_shared<const std::vector<std::byte>>(encode_peer_head(message));
    for (const auto& link : links_) {
        if (link != nullptr) {
            link->tell(head);
        }
    }
    look_soon();
}

void PeerFetches::on_wrong_bytes(SampleIndex sample, const std::string& node) {
    ++(is_own(sample) ? totals_.take_overs_failed : totals_.failures);
    if (PeerLink* const link = link_to(node)) {
        link->take_overs().note_lacked();
        link->fall(kQuarantine);
    }
}

void PeerFetches::note_stored(SampleIndex sample, const std::string& node, Bytes payload) {
    ++totals_.samples;
    totals_.bytes += payload;
    if (!is_own(sample)) {
        return;
    }
    ++totals_.taken_over;
    if (PeerLink* const link = link_to(node)) {
        link->take_overs().note_had();
    }
}

void PeerFetches::flush_soon() {
    if (!std::exchange(flushing_, true)) {
        tasks_.post([this] {
            flushing_ = false;
            for (const auto& link : links_) {
                if (link != nullptr) {
                    link->flush();
                }
            }
        });
    }
}

void PeerFetches::look_soon() {
    if (!std::exchange(looking_, true)) {
        timer_.run_in(kLookInterval, [this] { look(); });
    }
}

void PeerFetches::look() {
    looking_ = false;
    bool is_waiting = false;
    for (const auto& link : links_) {
        if (link != nullptr) {
            link->look();
            is_waiting = is_waiting || link->is_waiting();
        }
    }
    if (is_waiting) {
        look_soon();
    }
}

}  // namespace stoker::sidecar
