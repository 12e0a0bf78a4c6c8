#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

#include <fmt/core.h>
#include <pybind11/stl.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/binding/misses.h"
#include "client/src/binding/sample_object.h"
#include "client/src/core/mapped_file.h"
#include "client/src/core/node_reader.h"
#include "client/src/core/sidecar_client.h"
#include "common/domain/residency_word.h"

namespace stoker::client {

namespace {

namespace py = pybind11;

constexpr Duration kUnlinkedCheckInterval = std::chrono::milliseconds{100};
constexpr std::size_t kUnlinkedRounds = 256;  // intervals after which every map has been checked
constexpr Duration kReadsInterval = std::chrono::milliseconds{100};
constexpr std::size_t kReadsMax = 4096;

// Releases the buffer of PyObject_GetBuffer.
struct HeldBuffer {
    Py_buffer view{};
    bool held = false;

    ~HeldBuffer() {
        if (held) {
            PyBuffer_Release(&view);
        }
    }
};

bool is_resident(const Location& place) {
    const auto where = domain::unpack_residency(place.word);
    return where && where->segment_class == domain::SegmentClass::kResident;
}

bool copy_from_buffer(py::handle source, std::vector<std::uint64_t>& out) {
    HeldBuffer buffer;
    if (PyObject_CheckBuffer(source.ptr()) == 0) {
        return false;
    }
    if (PyObject_GetBuffer(source.ptr(), &buffer.view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
        PyErr_Clear();
        return false;
    }
    buffer.held = true;
    const std::string_view format = buffer.view.format == nullptr ? "B" : buffer.view.format;
    const bool integers = format == "l" || format == "q" || format == "L" || format == "Q";
    if (!integers || buffer.view.itemsize != sizeof(std::uint64_t) || buffer.view.ndim != 1) {
        return false;
    }
    out.resize(static_cast<std::size_t>(buffer.view.len) / sizeof(std::uint64_t));
    std::memcpy(out.data(), buffer.view.buf, static_cast<std::size_t>(buffer.view.len));
    return true;
}

// Converts to an id; negative numbers become huge ones, which fail the range check.
std::uint64_t to_id(PyObject* item) {
    const Py_ssize_t id = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (id == -1 && PyErr_Occurred() != nullptr) {
        throw py::error_already_set();
    }
    return static_cast<std::uint64_t>(id);
}

std::uint64_t id_below(std::uint64_t id, std::uint64_t count) {
    if (id >= count) {
        throw py::index_error(
            fmt::format("sample id {} is outside 0..{}", static_cast<std::int64_t>(id), count - 1));
    }
    return id;
}

Verify parse_verify(std::string_view text) {
    if (text == "first") {
        return Verify::kFirst;
    }
    if (text == "always") {
        return Verify::kAlways;
    }
    if (text == "never") {
        return Verify::kNever;
    }
    throw py::value_error("verify must be 'first', 'always' or 'never'");
}

// Python binding of NodeReader. The GIL is the lock that NodeReader requires. It is released only
// for requests to the sidecar, and while check() reads a sample for the first time, which may wait
// for the disk (check() may be called on any thread).
class PyNodeReader {
public:
    PyNodeReader(
        const std::string& directory,
        std::uint64_t revision,
        const std::string& verify,
        std::size_t maps_max,
        bool guest) {
        NodeReaderOptions options{
            directory, domain::RevisionId{revision}, parse_verify(verify), maps_max, guest};
        reader_ = [&options] {
            py::gil_scoped_release release;
            return value_or_raise(NodeReader::open(std::move(options)));
        }();
        catalog_ = py::cast(std::const_pointer_cast<Catalog>(reader_->catalog()));
    }

    // Returns (samples, misses, all_resident): `samples` has the length of `ids`, with None for a
    // miss; `misses` is None if there are none; `all_resident`: every sample found is a resident,
    // so no acknowledgement is urgent. A window sample's room is freed only by the acknowledgement.
    py::tuple read(py::handle ids) {
        const auto wanted = sample_ids(ids, reader_->manifest().sample_count());
        auto [views, all_resident] = find(wanted);
        py::list samples(wanted.size());
        std::vector<Misses::Item> misses;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            PyObject* item = nullptr;
            if (views[i]) {
                item = sample_of(wanted[i], *std::move(views[i]));
            } else {
                item = py::none().release().ptr();
                misses.push_back({wanted[i], i});
            }
            PyList_SET_ITEM(samples.ptr(), static_cast<Py_ssize_t>(i), item);
        }
        const py::object missing =
            misses.empty() ? py::none() : py::cast(Misses{std::move(misses)});
        return py::make_tuple(std::move(samples), missing, all_resident);
    }

    // Returns a resident sample that was checked before (a new reference) and adds its id to the
    // list for take_reads(). None: any other sample, or the list is full or too old, so call
    // take_reads(). nullptr: an exception is set. The fast path for samples read one by one;
    // CPython calls it directly, without pybind11.
    PyObject* read_resident(PyObject* item) {
        const Py_ssize_t id = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (id == -1 && PyErr_Occurred() != nullptr) {
            return nullptr;
        }
        const domain::SampleId wanted{static_cast<std::uint64_t>(id)};
        if (wanted.value() < reader_->manifest().sample_count() && reads_.size() < kReadsMax &&
            clock_.now() < reads_due_) {
            auto place = reader_->locate(wanted);
            if (place && is_resident(*place) && reader_->is_checked(wanted, *place)) {
                reads_.push_back(wanted.value());
                return sample_of(wanted.value(), *reader_->check(wanted, *std::move(place)));
            }
        }
        Py_RETURN_NONE;
    }

    // Returns the ids that read_resident() returned since the last call. Afterwards read_resident()
    // returns samples for another kReadsInterval.
    py::list take_reads() {
        reads_due_ = clock_.now() + kReadsInterval;
        const py::list ids = py::cast(reads_);
        reads_.clear();
        return ids;
    }

    // Reads one sample; None: a miss.
    py::object read_one(py::handle id) {
        const domain::SampleId wanted{
            id_below(to_id(id.ptr()), reader_->manifest().sample_count())};
        auto place = reader_->locate(wanted);
        std::optional<SampleView> view;
        if (place && reader_->is_checked(wanted, *place)) {
            view = reader_->check(wanted, *std::move(place));
        } else if (place) {
            py::gil_scoped_release release;
            view = reader_->check(wanted, *std::move(place));
        }
        close_unlinked();
        return view ? py::reinterpret_steal<py::object>(sample_of(wanted.value(), *std::move(view)))
                    : py::none();
    }

    // Requests the misses, waits, and reads those that the sidecar reports as ready into `samples`.
    // Returns the result of read_ready().
    bool fetch(SidecarClient& client, const py::list& samples, Misses& misses, double timeout) {
        const auto ids = misses.all(&Misses::Item::id);
        misses.note(
            waiting(timeout, [&](TimePoint deadline) { return client.fetch(ids, deadline); }));
        return read_ready(samples, misses);
    }

    // Reads the misses that are ready. False: some of these samples are absent or damaged.
    bool read_ready(const py::list& samples, Misses& misses) {
        std::vector<std::uint64_t> ready;
        for (const Misses::Item& miss : misses.items()) {
            if (miss.is_ready) {
                ready.push_back(miss.id);
            }
        }
        auto views = find(ready).first;
        std::size_t at = 0;
        const auto found = std::erase_if(misses.items(), [&](const Misses::Item& miss) {
            if (!miss.is_ready || !views[at++]) {
                return false;
            }
            samples[miss.position] =
                py::reinterpret_steal<py::object>(sample_of(miss.id, *std::move(views[at - 1])));
            return true;
        });
        return found == ready.size();
    }

    void share_checks(int file, std::uint64_t offset_bytes) {
        value_or_raise(reader_->share_checks(file, offset_bytes));
    }

    void refresh() { value_or_raise(reader_->refresh()); }

    [[nodiscard]] py::object catalog() const { return catalog_; }

    // Returns one byte per id: 1 if the sample is on the node now.
    [[nodiscard]] py::bytes resident(py::handle ids) const {
        std::string flags;
        for (const std::uint64_t id : sample_ids(ids, reader_->manifest().sample_count())) {
            flags.push_back(reader_->is_resident(domain::SampleId{id}) ? '\1' : '\0');
        }
        return {flags};
    }

    [[nodiscard]] py::dict counts() const {
        const NodeReaderCounts counts = reader_->counts();
        py::dict out;
        out["hits"] = counts.hits;
        out["hit_bytes"] = counts.hit_bytes;
        out["corrupt"] = counts.corrupt;
        return out;
    }

private:
    // Returns a view per id (nullopt: a miss), and whether all found samples are residents.
    std::pair<std::vector<std::optional<SampleView>>, bool> find(
        const std::vector<std::uint64_t>& ids) {
        std::vector<std::optional<SampleView>> views(ids.size());
        std::vector<std::pair<std::size_t, Location>> unchecked;
        bool all_resident = true;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const domain::SampleId id{ids[i]};
            auto place = reader_->locate(id);
            all_resident = all_resident && (!place || is_resident(*place));
            if (place && reader_->is_checked(id, *place)) {
                views[i] = reader_->check(id, *std::move(place));
            } else if (place) {
                unchecked.emplace_back(i, *std::move(place));
            }
        }
        if (!unchecked.empty()) {
            py::gil_scoped_release release;
            for (const auto& [i, place] : unchecked) {
                MappedFile::read_ahead(place.record);
            }
            for (auto& [i, place] : unchecked) {
                views[i] = reader_->check(domain::SampleId{ids[i]}, std::move(place));
            }
        }
        close_unlinked();
        return {std::move(views), all_resident};
    }

    // Checks each map within half a minute, not at each read: a check is a system call.
    void close_unlinked() {
        const TimePoint now = clock_.now();
        if (now >= unlinked_due_) {
            unlinked_due_ = now + kUnlinkedCheckInterval;
            reader_->retire_unlinked(2 + reader_->map_count() / kUnlinkedRounds);
        }
    }

    // A new Python object (a new reference) for the sample.
    PyObject* sample_of(std::uint64_t id, SampleView view) {
        PyObject* sample = new_sample(
            {view.bytes,
             id,
             reader_->manifest().sample(domain::SampleId{id}).label,
             view.seq,
             std::move(view.pin),
             nullptr,
             catalog_.ptr()});
        if (sample == nullptr) {
            throw py::error_already_set();
        }
        return sample;
    }

    std::unique_ptr<NodeReader> reader_;
    py::object catalog_;
    const SystemClock clock_;
    TimePoint unlinked_due_{};
    std::vector<std::uint64_t> reads_;
    TimePoint reads_due_{};  // in the past until take_reads() is called
};

constexpr const char* kReaderCapsule = "stoker.NodeReader";

PyObject* call_read_resident(PyObject* capsule, PyObject* item) {
    auto* reader = static_cast<PyNodeReader*>(PyCapsule_GetPointer(capsule, kReaderCapsule));
    try {
        return reader->read_resident(item);
    } catch (py::error_already_set& error) {
        error.restore();
        return nullptr;
    }
}

PyMethodDef read_resident_method = {
    "read_resident",
    call_read_resident,
    METH_O,
    "One resident sample that was checked before; None: any other."};

// read_resident() as a Python function, which keeps the reader alive.
py::object read_resident_of(const py::object& self) {
    const py::capsule capsule{self.cast<PyNodeReader*>(), kReaderCapsule, [](PyObject* dying) {
                                  Py_DECREF(static_cast<PyObject*>(PyCapsule_GetContext(dying)));
                              }};
    PyCapsule_SetContext(capsule.ptr(), self.inc_ref().ptr());
    return py::reinterpret_steal<py::object>(PyCFunction_New(&read_resident_method, capsule.ptr()));
}

}  // namespace

std::vector<std::uint64_t> sample_ids(py::handle ids, std::uint64_t count) {
    std::vector<std::uint64_t> out;
    if (!copy_from_buffer(ids, out)) {
        const py::object items = py::reinterpret_steal<py::object>(
            PySequence_Fast(ids.ptr(), "sample ids must be a sequence of integers"));
        if (!items) {
            throw py::error_already_set();
        }
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.ptr());
        out.reserve(static_cast<std::size_t>(size));
        for (Py_ssize_t i = 0; i < size; ++i) {
            out.push_back(to_id(PySequence_Fast_GET_ITEM(items.ptr(), i)));
        }
    }
    for (const std::uint64_t id : out) {
        id_below(id, count);
    }
    return out;
}

void add_node_reader(py::module_& module) {
    py::class_<PyNodeReader>(module, "NodeReader", "Reads a node directory; see node_reader.h.")
        .def(
            py::init<const std::string&, std::uint64_t, const std::string&, std::size_t, bool>(),
            py::arg("directory"),
            py::arg("revision"),
            py::arg("verify") = "first",
            py::arg("maps_max") = NodeReaderOptions{}.segment_maps_max,
            py::arg("guest") = false)
        .def("read", &PyNodeReader::read, py::arg("ids"))
        .def("read_one", &PyNodeReader::read_one, py::arg("id"))
        .def_property_readonly("read_resident", read_resident_of)
        .def("take_reads", &PyNodeReader::take_reads)
        .def(
            "fetch",
            &PyNodeReader::fetch,
            py::arg("client"),
            py::arg("samples"),
            py::arg("misses"),
            py::arg("timeout"))
        .def("read_ready", &PyNodeReader::read_ready, py::arg("samples"), py::arg("misses"))
        .def("share_checks", &PyNodeReader::share_checks, py::arg("file"), py::arg("offset"))
        .def("refresh", &PyNodeReader::refresh)
        .def("resident", &PyNodeReader::resident, py::arg("ids"))
        .def("counts", &PyNodeReader::counts)
        .def_property_readonly("catalog", &PyNodeReader::catalog);
}

}  // namespace stoker::client
