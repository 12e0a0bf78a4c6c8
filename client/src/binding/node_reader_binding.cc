#include <string_view>

#include <pybind11/stl.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "client/src/binding/sample_ids.h"
#include "client/src/binding/sample_object.h"
#include "client/src/core/node_reader.h"

namespace stoker::client {

namespace {

namespace py = pybind11;

constexpr std::size_t kUnlinkedChecksPerBatch = 2;

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
// around check(), which any thread may call, and only for batches with a first touch, which may
// wait for the disk.
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

    // Returns (samples, positions of misses): samples is as long as `ids`, with None for a miss.
    py::tuple read(py::handle ids) {
        const auto wanted = sample_ids(ids, reader_->manifest().sample_count());
        std::vector<std::optional<Location>> places;
        places.reserve(wanted.size());
        bool all_checked = true;
        for (const std::uint64_t id : wanted) {
            places.push_back(reader_->locate(domain::SampleId{id}));
            const auto& place = places.back();
            all_checked =
                all_checked && (!place || reader_->is_checked(domain::SampleId{id}, *place));
        }
        std::vector<std::optional<SampleView>> views(wanted.size());
        if (all_checked) {
            check_all(wanted, places, views);
        } else {
            py::gil_scoped_release release;
            check_all(wanted, places, views);
        }
        reader_->retire_unlinked(kUnlinkedChecksPerBatch);
        return to_python(wanted, views);
    }

    void refresh() { value_or_raise(reader_->refresh()); }

    void retire_unlinked() { reader_->retire_unlinked(reader_->mapped_segments()); }

    [[nodiscard]] py::object catalog() const { return catalog_; }

    [[nodiscard]] std::size_t mapped_segments() const { return reader_->mapped_segments(); }

    // One byte for each id: 1 if the sample is on the node now.
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
        out["misses"] = counts.misses;
        out["corrupt"] = counts.corrupt;
        out["segments_mapped"] = counts.segments_mapped;
        out["segments_retired"] = counts.segments_retired;
        return out;
    }

private:
    void check_all(
        const std::vector<std::uint64_t>& ids,
        std::vector<std::optional<Location>>& places,
        std::vector<std::optional<SampleView>>& views) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (places[i]) {
                views[i] = reader_->check(domain::SampleId{ids[i]}, *std::move(places[i]));
            }
        }
    }

    py::tuple to_python(
        const std::vector<std::uint64_t>& ids, std::vector<std::optional<SampleView>>& views) {
        py::list out(ids.size());
        py::list misses;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            PyObject* item = nullptr;
            if (views[i]) {
                item = new_sample(
                    {views[i]->bytes,
                     ids[i],
                     reader_->manifest().sample(domain::SampleId{ids[i]}).label,
                     views[i]->seq,
                     std::move(views[i]->pin),
                     nullptr,
                     catalog_.ptr()});
                if (item == nullptr) {
                    throw py::error_already_set();
                }
            } else {
                item = py::none().release().ptr();
                misses.append(i);
            }
            PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i), item);
        }
        return py::make_tuple(std::move(out), std::move(misses));
    }

    std::unique_ptr<NodeReader> reader_;
    py::object catalog_;
};

}  // namespace

void add_node_reader(py::module_& module) {
    py::class_<PyNodeReader>(module, "NodeReader", "Reads a node directory; see node_reader.h.")
        .def(
            py::init<const std::string&, std::uint64_t, const std::string&, std::size_t, bool>(),
            py::arg("directory"),
            py::arg("revision"),
            py::arg("verify") = "first",
            py::arg("maps_max") = 16384,
            py::arg("guest") = false)
        .def("read", &PyNodeReader::read, py::arg("ids"))
        .def("refresh", &PyNodeReader::refresh)
        .def("retire_unlinked", &PyNodeReader::retire_unlinked)
        .def("resident", &PyNodeReader::resident, py::arg("ids"))
        .def("counts", &PyNodeReader::counts)
        .def_property_readonly("catalog", &PyNodeReader::catalog)
        .def_property_readonly("mapped_segments", &PyNodeReader::mapped_segments);
}

}  // namespace stoker::client
