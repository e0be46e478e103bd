# Defines trnmath::sleef where SLEEF is: trnmath with SLEEF's functions beside the engine's tables (TRN_USE_SLEEF).
# Sets trnmath_sleef_FOUND, and trnmath_NOT_FOUND_MESSAGE where it is missing. Read by trnmath-config.cmake and, with
# TRNMATH_SLEEF, by CMakeLists.txt. pkg-config gives hints only: SLEEF_ROOT or CMAKE_PREFIX_PATH do as well.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(trnmath_pc_sleef QUIET sleef)
endif()
find_path(TRNMATH_SLEEF_INCLUDE sleef.h HINTS ${trnmath_pc_sleef_INCLUDEDIR} PATHS ENV SLEEF_ROOT PATH_SUFFIXES include)
find_library(TRNMATH_SLEEF_LIBRARY sleef HINTS ${trnmath_pc_sleef_LIBDIR} PATHS ENV SLEEF_ROOT PATH_SUFFIXES lib lib64)
mark_as_advanced(TRNMATH_SLEEF_INCLUDE TRNMATH_SLEEF_LIBRARY)

set(trnmath_sleef_FOUND FALSE)
if(TRNMATH_SLEEF_INCLUDE AND TRNMATH_SLEEF_LIBRARY)
    set(trnmath_sleef_FOUND TRUE)
    if(NOT TARGET trnmath::sleef)
        add_library(trnmath::sleef INTERFACE IMPORTED GLOBAL)
        set_target_properties(trnmath::sleef PROPERTIES
            INTERFACE_COMPILE_DEFINITIONS TRN_USE_SLEEF=1
            INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${TRNMATH_SLEEF_INCLUDE}"
            INTERFACE_INCLUDE_DIRECTORIES "${TRNMATH_SLEEF_INCLUDE}"
            INTERFACE_LINK_LIBRARIES "trnmath::trnmath;${TRNMATH_SLEEF_LIBRARY}")
    endif()
else()
    set(trnmath_NOT_FOUND_MESSAGE
        "trnmath::sleef needs SLEEF (sleef.h and libsleef; Debian: libsleef-dev), which was not found")
endif()
