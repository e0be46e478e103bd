# What vcpkg's helpers do, as far as our port needs them, so that its portfile really installs: cmake -DPORT=trnmath
# -DPORT_DIR=... -DCURRENT_PACKAGES_DIR=... -DCURRENT_BUILDTREES_DIR=... -P fake_vcpkg.cmake. SPDX-License-Identifier: MIT
cmake_minimum_required(VERSION 3.20)

function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(status)
        message(FATAL_ERROR "${ARGV}: ${said}")
    endif()
endfunction()

function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    if(arg_UNPARSED_ARGUMENTS OR NOT VCPKG_BUILD_TYPE STREQUAL "release")
        message(FATAL_ERROR "arguments: ${arg_UNPARSED_ARGUMENTS}; build type: ${VCPKG_BUILD_TYPE}")
    endif()
    run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${CURRENT_BUILDTREES_DIR}/rel" -DCMAKE_BUILD_TYPE=Release
        "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
    run("${CMAKE_COMMAND}" --build "${CURRENT_BUILDTREES_DIR}/rel" --target install)
endfunction()

# The files move to share/PORT, and so their way to the prefix has two steps.
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
    file(GLOB found "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/*")
    if(NOT found)
        message(FATAL_ERROR "there is nothing in ${arg_CONFIG_PATH}")
    endif()
    foreach(file IN LISTS found)
        file(READ "${file}" text)
        string(REGEX REPLACE "(\\.\\./)+\" ABSOLUTE" "../../\" ABSOLUTE" text "${text}")
        set(up "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
        string(REPLACE "${up}${up}${up}" "${up}${up}" text "${text}")
        get_filename_component(name "${file}" NAME)
        file(WRITE "${CURRENT_PACKAGES_DIR}/share/${PORT}/${name}" "${text}")
        file(REMOVE "${file}")
    endforeach()
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake")
endfunction()

function(vcpkg_fixup_pkgconfig)
    file(GLOB found "${CURRENT_PACKAGES_DIR}/share/pkgconfig/*.pc")
    if(NOT found)
        message(FATAL_ERROR "there are no files for pkg-config")
    endif()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    file(COPY_FILE "${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright")
endfunction()

include("${PORT_DIR}/portfile.cmake")
