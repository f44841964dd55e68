# find_package(tegula): the imported targets tegula::tegula (compiler), tegula::rt (runtime), tegula::jit (both
# together), tegula::tuning, tegula::headers (for plugins), tegula::emulator (instead of libcuda.so.1), tegula::command, and the function tegula_embed.
include(${CMAKE_CURRENT_LIST_DIR}/tegula-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/tegula-embed.cmake)
foreach(component tegula rt jit tuning headers emulator command)
  set(tegula_${component}_FOUND TRUE)
endforeach()
foreach(component ${tegula_FIND_COMPONENTS})
  if(NOT tegula_${component}_FOUND AND tegula_FIND_REQUIRED_${component})
    set(tegula_FOUND FALSE)
    set(tegula_NOT_FOUND_MESSAGE "tegula has no component ${component}: expected tegula, rt, jit, tuning, headers, emulator or command")
  endif()
endforeach()
