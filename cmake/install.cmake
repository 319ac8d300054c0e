# `make install`: the program, its libtorch, the man page, README and license. Tile tables are compiled in.
set(libraries lib/valora)
get_filename_component(torch_folder "${TORCH_LIBRARY}" DIRECTORY)
if(TORCH_CUDA_LIBRARIES)
  # A CUDA libtorch takes several GB and finds its libraries relative to its own location, so it is not copied.
  set_target_properties(valora PROPERTIES INSTALL_RPATH "${torch_folder}")
else()
  set_target_properties(valora PROPERTIES INSTALL_RPATH "$ORIGIN/../${libraries}")
  file(GLOB shared "${torch_folder}/libc10.so" "${torch_folder}/libtorch.so" "${torch_folder}/libtorch_cpu.so"
    "${torch_folder}/libgomp*.so*")
  install(FILES ${shared} DESTINATION ${libraries})
endif()
install(TARGETS valora RUNTIME DESTINATION bin)
install(FILES ${PROJECT_SOURCE_DIR}/share/man/valora.1 DESTINATION share/man/man1)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/valora)
get_target_property(xgrammar_folder xgrammar SOURCE_FOLDER)
install(FILES ${xgrammar_folder}/LICENSE ${xgrammar_folder}/NOTICE DESTINATION share/doc/valora/xgrammar)
