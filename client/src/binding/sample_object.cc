#include "client/src/binding/sample_object.h"

#include <array>
#include <memory>
#include <new>

#include "client/src/core/catalog.h"
#include "client/src/core/mapped_file.h"

namespace stoker::client {

namespace {

namespace py = pybind11;

struct SampleObject {
    PyObject ob_base;
    const std::byte* data;
    Py_ssize_t size;
    std::uint64_t id;
    std::int32_t label;
    PyObject* owner;
    PyObject* catalog;
    std::optional<domain::SegmentSeq> seq;
    std::shared_ptr<const void> pin;
};

PyTypeObject* sample_type = nullptr;

SampleObject* self_of(PyObject* object) {
    return reinterpret_cast<SampleObject*>(object);
}

std::span<const std::byte> bytes_of(const SampleObject& sample) {
    return {sample.data, static_cast<std::size_t>(sample.size)};
}

void dealloc(PyObject* object) {
    SampleObject* self = self_of(object);
    std::destroy_at(&self->pin);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->catalog);
    PyTypeObject* type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
    const SampleObject* self = self_of(object);
    return PyBuffer_FillInfo(
        view, object, const_cast<std::byte*>(self->data), self->size, /*readonly=*/1, flags);
}

Py_ssize_t length(PyObject* object) {
    return self_of(object)->size;
}

PyObject* get_view(PyObject* object, void* /*closure*/) {
    return PyMemoryView_FromObject(object);
}

PyObject* get_id(PyObject* object, void* /*closure*/) {
    return PyLong_FromUnsignedLongLong(self_of(object)->id);
}

PyObject* get_label(PyObject* object, void* /*closure*/) {
    return PyLong_FromLong(self_of(object)->label);
}

PyObject* get_source(PyObject* object, void* /*closure*/) {
    return PyUnicode_FromString(self_of(object)->seq ? "node" : "origin");
}

PyObject* raise_cut() {
    PyErr_SetString(PyExc_OSError, "the sample's file in the node directory was truncated");
    return nullptr;
}

// The stored checksum for a sample of a node directory; for other samples it is computed.
PyObject* get_checksum(PyObject* object, void* /*closure*/) {
    const SampleObject* self = self_of(object);
    if (self->seq) {
        std::array<std::byte, domain::kRecordHeaderBytes> header{};
        if (!copy_guarded({self->data - header.size(), header.size()}, header, header.size())) {
            return raise_cut();
        }
        if (const auto record = domain::decode_record_header(header, *self->seq)) {
            return PyLong_FromUnsignedLong(record->payload_crc32c);
        }
    }
    const auto crc = copy_guarded(bytes_of(*self), {}, 0);
    return crc ? PyLong_FromUnsignedLong(*crc) : raise_cut();
}

// Keys are bytes at the origin; non-UTF-8 bytes become surrogates, as in Python's file names.
PyObject* decode_text(std::string_view text) {
    return PyUnicode_DecodeUTF8(
        text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}

PyObject* key_or_etag(PyObject* object, bool want_key) {
    const SampleObject* self = self_of(object);
    if (PyTuple_Check(self->catalog)) {
        PyObject* text = PyTuple_GetItem(self->catalog, want_key ? 0 : 1);
        Py_XINCREF(text);
        return text;
    }
    try {
        const auto& catalog = py::handle{self->catalog}.cast<const Catalog&>();
        const auto info = catalog.manifest().sample(domain::SampleId{self->id});
        return decode_text(want_key ? info.key : info.etag);
    } catch (const py::cast_error& error) {
        PyErr_SetString(PyExc_TypeError, error.what());
        return nullptr;
    }
}

PyObject* get_key(PyObject* object, void* /*closure*/) {
    return key_or_etag(object, true);
}

PyObject* get_etag(PyObject* object, void* /*closure*/) {
    return key_or_etag(object, false);
}

// Pickles by value: another process gets a copy.
PyObject* reduce(PyObject* object, PyObject* /*unused*/) {
    const SampleObject* self = self_of(object);
    const auto data =
        py::reinterpret_steal<py::object>(PyBytes_FromStringAndSize(nullptr, self->size));
    const auto key = py::reinterpret_steal<py::object>(key_or_etag(object, true));
    const auto etag = py::reinterpret_steal<py::object>(key_or_etag(object, false));
    if (!data || !key || !etag) {
        return nullptr;
    }
    const auto bytes = bytes_of(*self);
    auto* copy = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(data.ptr()));
    if (!copy_guarded(bytes, {copy, bytes.size()}, bytes.size())) {
        return raise_cut();
    }
    return Py_BuildValue(
        "O(OKi(OO))",
        reinterpret_cast<PyObject*>(sample_type),
        data.ptr(),
        static_cast<unsigned long long>(self->id),
        static_cast<int>(self->label),
        key.ptr(),
        etag.ptr());
}

PyObject* repr(PyObject* object) {
    const SampleObject* self = self_of(object);
    const py::object key = py::reinterpret_steal<py::object>(key_or_etag(object, true));
    if (!key) {
        return nullptr;
    }
    return PyUnicode_FromFormat(
        "<stoker.Sample id=%llu key=%R label=%d size=%zd>",
        static_cast<unsigned long long>(self->id),
        key.ptr(),
        static_cast<int>(self->label),
        self->size);
}

// Gets the bytes of a bytes object, or of a contiguous memoryview whose memory no one else can
// release. False: an exception is set.
bool payload_of(PyObject* data, std::span<const std::byte>& bytes) {
    if (PyBytes_Check(data)) {
        bytes = std::as_bytes(
            std::span{PyBytes_AS_STRING(data), static_cast<std::size_t>(PyBytes_GET_SIZE(data))});
        return true;
    }
    if (!PyMemoryView_Check(data) || !PyBuffer_IsContiguous(PyMemoryView_GET_BUFFER(data), 'C')) {
        PyErr_SetString(PyExc_TypeError, "a Sample needs bytes or a contiguous memoryview");
        return false;
    }
    const Py_buffer* buffer = PyMemoryView_GET_BUFFER(data);
    bytes = {static_cast<const std::byte*>(buffer->buf), static_cast<std::size_t>(buffer->len)};
    return true;
}

// Sample(data, id, label, catalog): for samples that were read at the origin, and for unpickling.
PyObject* create(PyTypeObject* /*type*/, PyObject* arguments, PyObject* /*keywords*/) {
    PyObject* data = nullptr;
    unsigned long long id = 0;
    int label = 0;
    PyObject* catalog = nullptr;
    if (PyArg_ParseTuple(arguments, "OKiO", &data, &id, &label, &catalog) == 0) {
        return nullptr;
    }
    SampleFields fields;
    if (!payload_of(data, fields.bytes)) {
        return nullptr;
    }
    fields.id = id;
    fields.label = label;
    fields.owner = data;
    fields.catalog = catalog;
    return new_sample(std::move(fields));
}

// Casts a function for CPython, which requires mutable C strings and function pointers as void*.
// Only this function has such casts.
template <class Function>
void* slot(Function* function) {
    return reinterpret_cast<void*>(function);
}

PyGetSetDef properties[] = {
    {"view",
     get_view,
     nullptr,
     "memoryview: the bytes, read-only, in place (uint8, one dimension)",
     nullptr},
    {"id", get_id, nullptr, "int: dense id of the sample in its dataset revision", nullptr},
    {"label",
     get_label,
     nullptr,
     "int: index into Samples.classes, -1 without a parent folder",
     nullptr},
    {"key", get_key, nullptr, "str: key at the origin, relative to the dataset", nullptr},
    {"etag", get_etag, nullptr, "str: ETag of the origin's object, without quotes", nullptr},
    {"checksum", get_checksum, nullptr, "int: CRC-32C of the bytes", nullptr},
    {"source",
     get_source,
     nullptr,
     "str: 'node' (mapped from the node directory) or 'origin'",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "pickles a copy of the bytes"},
    {nullptr, nullptr, 0, nullptr}};

constexpr char kDoc[] =
    "One sample: a read-only buffer (`memoryview(sample)`, `bytes(sample)`, "
    "`numpy.frombuffer(sample, 'u1')`) with its id, "
    "label and key.\n\nThe bytes stay valid for as long as the sample or a view of it lives, "
    "whatever the cache does.";

}  // namespace

std::span<const std::byte> sample_bytes(PyObject* sample) {
    if (Py_TYPE(sample) != sample_type) {
        throw py::type_error("expected a stoker.Sample");
    }
    return bytes_of(*self_of(sample));
}

PyObject* new_sample(SampleFields fields) {
    auto* self = PyObject_New(SampleObject, sample_type);
    if (self == nullptr) {
        return nullptr;
    }
    self->data = fields.bytes.data();
    self->size = static_cast<Py_ssize_t>(fields.bytes.size());
    self->id = fields.id;
    self->label = fields.label;
    self->owner = fields.owner;
    self->catalog = fields.catalog;
    Py_XINCREF(self->owner);
    Py_XINCREF(self->catalog);
    self->seq = fields.seq;
    new (&self->pin) std::shared_ptr<const void>(std::move(fields.pin));
    return reinterpret_cast<PyObject*>(self);
}

void add_sample_type(py::module_& module) {
    PyType_Slot slots[] = {
        {Py_tp_dealloc, slot(dealloc)},
        {Py_tp_new, slot(create)},
        {Py_tp_repr, slot(repr)},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_doc, const_cast<char*>(kDoc)},
        {Py_sq_length, slot(length)},
        {Py_bf_getbuffer, slot(get_buffer)},
        {0, nullptr}};
    PyType_Spec spec = {"stoker._core.Sample", sizeof(SampleObject), 0, Py_TPFLAGS_DEFAULT, slots};
    auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
    if (!type) {
        throw py::error_already_set();
    }
    sample_type = reinterpret_cast<PyTypeObject*>(type.ptr());
    module.add_object("Sample", type);
}

}  // namespace stoker::client
