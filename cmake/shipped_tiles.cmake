# Generates a C++ source from share/tiles/*.json, so that the program needs no files at run time.
function(valora_shipped_tiles output)
  file(GLOB tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/share/tiles/*.json)
  set(entries "")
  foreach(table ${tables})
    get_filename_component(name ${table} NAME_WE)
    file(READ ${table} text)
    string(APPEND entries "    {\"${name}\", R\"tiles(${text})tiles\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"#include <vector>

#include \"kernels/tiles/find_tiles.h\"

namespace valora::kernels {

std::span<const ShippedTiles> shipped_tiles() {
  static const std::vector<ShippedTiles> tables{
@entries@  };
  return tables;
}

}  // namespace valora::kernels
")
endfunction()
