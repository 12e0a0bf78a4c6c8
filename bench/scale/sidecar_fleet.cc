#include "bench/scale/sidecar_fleet.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "proto/control/v1/control.grpc.pb.h"

namespace stoker::bench {

namespace v1 = control::v1;

namespace {

constexpr std::uint64_t kSamples = 1'000'000;
constexpr std::uint64_t kSampleBytes = 110'000;
constexpr Duration kRedial = std::chrono::seconds{1};

v1::SidecarMessage hello_of(const PlacedJob& job) {
    v1::SidecarMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_namespace_(job.ns);
    hello.set_pod(job.pod);
    hello.set_node(job.node);
    hello.set_training_job(job.name);
    hello.set_training_job_uid(job.uid);
    hello.set_version("scale");
    v1::DatasetMount& mount = *hello.add_datasets();
    mount.set_name("train");
    mount.set_dataset_uid(job.dataset_uid);
    return message;
}

// Report `sequence` of a leader that reads 1,000 samples a second and waits a third of its time.
v1::SidecarMessage report_of(const PlacedJob& job, std::uint64_t sequence, std::uint64_t granted) {
    v1::SidecarMessage message;
    v1::Report& report = *message.mutable_report();
    report.set_sequence(sequence);
    v1::DatasetReport& dataset = *report.add_datasets();
    dataset.set_name("train");
    dataset.set_dataset_uid(job.dataset_uid);
    dataset.set_leader(true);
    dataset.set_manifest_state(v1::MANIFEST_STATE_READY);
    dataset.set_revision("0123456789abcdef");
    dataset.set_read_revision("0123456789abcdef");
    dataset.set_samples(kSamples);
    dataset.set_total_bytes(kSamples * kSampleBytes);
    dataset.set_resident_bytes(std::min(granted, sequence * 1000 * kSampleBytes));
    dataset.set_resident_samples(dataset.resident_bytes() / kSampleBytes);
    dataset.set_granted_bytes(granted);
    dataset.set_cache_bytes_read(sequence * 1500 * kSampleBytes);
    dataset.set_origin_bytes_read(sequence * 500 * kSampleBytes);
    dataset.set_miss_bytes_read(sequence * 500 * kSampleBytes);
    dataset.set_hit_samples(sequence * 1500);
    dataset.set_miss_samples(sequence * 500);
    dataset.set_origin_requests(sequence * 500);
    dataset.set_origin_request_ns(sequence * 500 * 20'000'000);
    dataset.set_admitting(true);
    v1::JobReport& trainer = *report.mutable_job();
    trainer.set_epoch(1);
    trainer.set_samples(sequence * 2000);
    trainer.set_bytes(sequence * 2000 * kSampleBytes);
    trainer.set_steps(sequence * 20);
    trainer.set_wait_ns(sequence * 700'000'000);
    trainer.set_compute_ns(sequence * 1'300'000'000);
    trainer.set_epoch_samples(kSamples);
    trainer.set_epoch_position(std::min(sequence * 2000, kSamples));
    return message;
}

}  // namespace

// One stream. gRPC's callbacks and the fleet's thread use it.
class SidecarFleet::Sidecar {
public:
    Sidecar(SidecarFleet& fleet, const PlacedJob& job)
        : fleet_(fleet),
          job_(job),
          token_(fleet.options_.token(job)) {}

    ~Sidecar() { hang_up(); }

    Sidecar(const Sidecar&) = delete;
    Sidecar& operator=(const Sidecar&) = delete;

    // Dials if there is no stream.
    void dial(const std::string& address) {
        if (call_) {
            return;
        }
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
        grpc::SslCredentialsOptions tls;
        tls.pem_root_certs = fleet_.options_.ca;
        auto channel = grpc::CreateCustomChannel(address, grpc::SslCredentials(tls), arguments);
        call_ = std::make_unique<Call>(*this, v1::Control::NewStub(channel));
        call_->begin(token_);
    }

    // Sends a report if the stream is up; drops a stream that has ended. True: dial again.
    bool step() {
        if (call_ && call_->is_over()) {
            call_.reset();
        }
        if (call_ && attached_) {
            ++fleet_.reports_;
            call_->send(report_of(job_, ++sequence_, granted_bytes_));
        }
        return !call_;
    }

    [[nodiscard]] bool attached() const { return attached_; }

    [[nodiscard]] bool granted() const { return granted_; }

    void hang_up() {
        if (call_) {
            call_->cancel();
            while (!call_->is_over()) {
                std::this_thread::sleep_for(std::chrono::milliseconds{1});  // gRPC reports no end
            }
        }
        call_.reset();
    }

private:
    class Call final : public grpc::ClientBidiReactor<v1::SidecarMessage, v1::OperatorMessage> {
    public:
        Call(Sidecar& sidecar, std::unique_ptr<v1::Control::Stub> stub)
            : sidecar_(sidecar),
              stub_(std::move(stub)),
              out_(hello_of(sidecar.job_)) {}

        void begin(const std::string& token) {
            context_.AddMetadata("authorization", "Bearer " + token);
            stub_->async()->Attach(&context_, this);
            writing_ = true;
            StartWrite(&out_);
            StartRead(&in_);
            StartCall();
        }

        void send(v1::SidecarMessage message) {
            if (!writing_.exchange(true)) {
                out_ = std::move(message);
                StartWrite(&out_);
            }
        }

        void cancel() { context_.TryCancel(); }

        void OnWriteDone(bool /*ok*/) override { writing_ = false; }

        void OnReadDone(bool ok) override {
            if (!ok) {
                return;
            }
            for (const v1::Grant& grant : in_.grants()) {
                sidecar_.granted_bytes_ = grant.resident_bytes();
                sidecar_.granted_ = true;
            }
            sidecar_.attached_ = true;
            StartRead(&in_);
        }

        void OnDone(const grpc::Status& /*status*/) override {
            sidecar_.attached_ = false;
            sidecar_.granted_ = false;
            over_ = true;  // from here on this may be deleted
        }

        [[nodiscard]] bool is_over() const { return over_; }

    private:
        Sidecar& sidecar_;
        std::unique_ptr<v1::Control::Stub> stub_;
        grpc::ClientContext context_;
        v1::SidecarMessage out_;
        v1::OperatorMessage in_;
        std::atomic<bool> writing_{false};
        std::atomic<bool> over_{false};
    };

    SidecarFleet& fleet_;
    const PlacedJob& job_;
    std::string token_;
    std::uint64_t sequence_ = 0;
    std::atomic<std::uint64_t> granted_bytes_{0};
    std::atomic<bool> attached_{false};
    std::atomic<bool> granted_{false};
    std::unique_ptr<Call> call_;
};

SidecarFleet::SidecarFleet(const std::vector<PlacedJob>& jobs, Options options)
    : options_(std::move(options)) {
    for (const PlacedJob& job : jobs) {
        sidecars_.push_back(std::make_unique<Sidecar>(*this, job));
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

SidecarFleet::~SidecarFleet() {
    thread_.request_stop();
    thread_.join();
}

// Lets each sidecar report once per interval, in slices of a hundredth of the sidecars.
void SidecarFleet::run(const std::stop_token& stop) {
    constexpr std::size_t kSlices = 100;
    const Duration pause = options_.report_interval / kSlices;
    const std::size_t dials_max = std::max<std::size_t>(
        1,
        static_cast<std::size_t>(
            static_cast<double>(options_.dials_per_second) *
            std::chrono::duration<double>(pause).count()));
    for (std::size_t slice = 0; !stop.stop_requested(); slice = (slice + 1) % kSlices) {
        const std::string address = options_.address();
        std::size_t dials = 0;
        for (std::size_t i = slice; i < sidecars_.size(); i += kSlices) {
            if (sidecars_[i]->step() && !address.empty() && dials < dials_max) {
                ++dials;
                sidecars_[i]->dial(address);
            }
        }
        std::this_thread::sleep_for(pause);  // spreads the slices over the interval
    }
}

std::size_t SidecarFleet::attached() const {
    return static_cast<std::size_t>(std::count_if(
        sidecars_.begin(), sidecars_.end(), [](const auto& one) { return one->attached(); }));
}

std::size_t SidecarFleet::granted() const {
    return static_cast<std::size_t>(std::count_if(
        sidecars_.begin(), sidecars_.end(), [](const auto& one) { return one->granted(); }));
}

}  // namespace stoker::bench
