# stoker_library(common/domain SOURCES a.cc b.cc DEPS common/base EXTERNAL Some::target)
#
# One static library per folder. DEPS are spelled like their folders and are public; EXTERNAL libraries
# link privately, so that a heavy header stays behind the .cc file that includes it. A module without sources
# is an interface library.
function(stoker_target_name out path)
    string(REPLACE "/" "_" name "${path}")
    set(${out} "stoker_${name}" PARENT_SCOPE)
endfunction()

function(stoker_link target scope)
    foreach(dep IN LISTS ARGN)
        stoker_target_name(dep_target "${dep}")
        target_link_libraries(${target} ${scope} ${dep_target})
    endforeach()
endfunction()

function(stoker_library path)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;EXTERNAL" ${ARGN})
    stoker_target_name(target "${path}")
    if(ARG_SOURCES)
        add_library(${target} STATIC ${ARG_SOURCES})
        target_link_libraries(${target} PUBLIC stoker_flags fmt::fmt tl::expected PRIVATE ${ARG_EXTERNAL})
        stoker_link(${target} PUBLIC ${ARG_DEPS})
    else()
        add_library(${target} INTERFACE)
        target_link_libraries(${target} INTERFACE stoker_flags fmt::fmt tl::expected)
        stoker_link(${target} INTERFACE ${ARG_DEPS})
    endif()
endfunction()

# stoker_program(stoker-sidecar SOURCES main.cc DEPS sidecar/service)
function(stoker_program name)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;EXTERNAL" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE stoker_flags ${ARG_EXTERNAL})
    stoker_link(${name} PRIVATE ${ARG_DEPS})
endfunction()

# Parsing GoogleTest's headers takes longer than most tests, so all tests use them precompiled. Test code is compiled
# with less optimisation than the code under test.
function(stoker_test_headers)
    file(WRITE "${CMAKE_BINARY_DIR}/test_headers.cc" "")
    add_library(stoker_test_headers OBJECT "${CMAKE_BINARY_DIR}/test_headers.cc")
    target_link_libraries(stoker_test_headers PRIVATE stoker_flags fmt::fmt tl::expected GTest::gmock)
    # The same settings as a program's: g++ rejects a precompiled header made with others.
    set_target_properties(stoker_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(stoker_test_headers PRIVATE -fPIE $<$<CONFIG:RelWithDebInfo>:-O1>)
    target_precompile_headers(stoker_test_headers PRIVATE
        <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <tl/expected.hpp>
        <algorithm> <atomic> <chrono> <filesystem> <functional> <map> <memory> <mutex> <optional> <random> <span>
        <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
endfunction()

# stoker_test(unit/common/base LABEL unit SOURCES result_test.cc DEPS common/base): one CTest entry per folder.
function(stoker_test name)
    cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS;EXTERNAL" ${ARGN})
    string(REPLACE "/" "_" target "test_${name}")
    add_executable(${target} ${ARG_SOURCES})
    target_link_libraries(${target} PRIVATE
        stoker_flags fmt::fmt tl::expected GTest::gmock GTest::gtest_main ${ARG_EXTERNAL})
    stoker_link(${target} PRIVATE ${ARG_DEPS})
    # At -O1 g++ 12 wrongly reports copies beyond the end of moved strings.
    target_compile_options(${target} PRIVATE
        $<$<CONFIG:RelWithDebInfo>:-O1 -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
    target_precompile_headers(${target} REUSE_FROM stoker_test_headers)
    add_test(NAME ${name} COMMAND ${target})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 120)
    endif()
    # unit/sidecar/core takes 25 times as long without optimisation and with the address sanitizer.
    if(STOKER_SANITIZE)
        math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 10")
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# stoker_fuzz(manifest SOURCES targets/manifest_fuzz.cc DEPS common/domain): bin/fuzz_manifest. Only where
# STOKER_SANITIZE has fuzzer-no-link (preset `fuzz`).
function(stoker_fuzz name)
    cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
    add_executable(fuzz_${name} targets/fuzz_main.cc ${ARG_SOURCES})
    target_link_libraries(fuzz_${name} PRIVATE stoker_flags fmt::fmt tl::expected)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    stoker_link(fuzz_${name} PRIVATE ${ARG_DEPS})
    add_dependencies(fuzzers fuzz_${name})
endfunction()
