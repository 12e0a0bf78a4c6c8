# The module as pip builds it: the same sources, without the rest of the project and without a shared fmt library, so
# the wheel needs only the C and C++ run-time.
project(stoker_client VERSION ${SKBUILD_PROJECT_VERSION} LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()

find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 2.10 CONFIG REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)

get_filename_component(root "${CMAKE_CURRENT_SOURCE_DIR}" DIRECTORY)
include("${root}/proto/local/sources.cmake")
list(TRANSFORM proto_local_sources PREPEND proto/)
set(shared_sources
    common/base/bytes.cc common/base/check.cc common/base/clock.cc common/base/crc32c.cc
    common/base/error.cc common/domain/chunk_format.cc common/domain/epoch_length.cc
    common/domain/fixed_rows.cc common/domain/http_index.cc common/domain/http_uri.cc common/domain/listing.cc
    common/domain/manifest.cc common/domain/manifest_rules.cc
    common/domain/manifest_writer.cc common/domain/megatron_index.cc common/domain/range_place.cc
    common/domain/residency_table.cc common/domain/segment_format.cc common/domain/shard_format.cc
    common/domain/shard_index.cc common/domain/tar_format.cc common/domain/tar_index.cc
    common/domain/tfrecord_index.cc ${proto_local_sources})
list(TRANSFORM shared_sources PREPEND "${root}/")

pybind11_add_module(_core MODULE ${binding_sources} ${core_sources} ${shared_sources})
target_include_directories(_core PRIVATE "${root}")
target_compile_definitions(_core PRIVATE STOKER_VERSION="${PROJECT_VERSION}")
target_compile_options(_core PRIVATE -Wall -Wextra "-ffile-prefix-map=${root}=.")
target_link_libraries(_core PRIVATE fmt::fmt-header-only tl::expected Threads::Threads)
install(TARGETS _core LIBRARY DESTINATION stoker)
