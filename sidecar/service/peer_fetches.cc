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
    taking_.clear();
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

bool PeerFetches::may_ask(SampleIndex sample) const {
    const std::size_t owner = placement_ == nullptr ? 0 : placement_->owner(sample);
    return owner < links_.size() && links_[owner] != nullptr && links_[owner]->may_ask();
}

void PeerFetches::note_not_asked(SampleIndex sample) {
    const std::size_t owner = placement_ == nullptr ? 0 : placement_->owner(sample);
    const bool is_slow =
        owner < links_.size() && links_[owner] != nullptr && links_[owner]->is_stalled();
    ++(is_slow ? totals_.hedges : totals_.failures);
}

bool PeerFetches::takes_over(SampleIndex sample) {
    if (placement_ == nullptr || !take_overs_.may_ask()) {
        return false;
    }
    const auto former = placement_->runner_up(sample, [this](std::size_t i) {
        return links_[i] != nullptr && take_overs_.may_ask(links_[i]->member().node);
    });
    if (!former || !links_[*former]->may_ask() || links_[*former]->is_stalled()) {
        return false;
    }
    take_overs_.note_asked();
    taking_[sample] = *former;
    return true;
}

bool PeerFetches::ask(SampleIndex sample) {
    if (const auto taken = taking_.extract(sample)) {
        if (!links_[taken.mapped()]->take_over(sample)) {
            return false;
        }
    } else if (const std::size_t owner = placement_ == nullptr ? 0 : placement_->owner(sample);
               owner >= links_.size() || links_[owner] == nullptr || !links_[owner]->ask(sample)) {
        look_soon();
        return false;
    }
    flush_soon();
    look_soon();
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

void PeerFetches::on_wrong_bytes(const std::string& node) {
    for (const auto& link : links_) {
        if (link != nullptr && link->member().node == node) {
            link->fall(kQuarantine);
        }
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
