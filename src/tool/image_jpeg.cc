/// Images in JPEG.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>  // wants size_t and FILE

#include <jerror.h>  // wants jpeglib.h

#include "base/error.h"
#include "tool/exif.h"
#include "tool/image.h"

namespace lamina::tool {
namespace {

/// Most scans of an image, and of its pixels over all scans: a small file may hold thousands, and each goes
/// over the whole image. Encoders make about ten.
constexpr int kMostScans = 500;
constexpr double kMostWork = 1ULL << 34;
constexpr long kMostMemory = 1L << 31;  ///< for all coefficients of the largest image

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];     ///< of the error that ended it
  bool no_memory;                 ///< that was it
  char warning[JMSG_LENGTH_MAX];  ///< the first; the image is damaged
};

JpegErrors& errors_of(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

/// What libjpeg found wrong, in words about the file.
const char* words_of(int code) {
  switch (code) {
    case JERR_OUT_OF_MEMORY:
      return "no memory for the image";
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
      return "the file is cut off";
    case JERR_NO_SOI:
      return "it does not begin like a JPEG file";
    case JERR_NO_IMAGE:
    case JERR_SOF_NO_SOS:
      return "there is no image in it";
    case JERR_IMAGE_TOO_BIG:
      return "the image is wider or higher than 65500";
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
      return "this kind of JPEG is not supported (lossless, 12 bits, CMYK and others)";
    default:
      return "the file is damaged";
  }
}

void keep_text(char (&to)[JMSG_LENGTH_MAX], const char* text) { std::snprintf(to, sizeof to, "%s", text); }

void prepare(JpegErrors& errors) {
  jpeg_std_error(&errors.base);
  errors.base.error_exit = [](j_common_ptr info) {
    auto& e = errors_of(info);
    keep_text(e.text, words_of(e.base.msg_code));
    e.no_memory = e.base.msg_code == JERR_OUT_OF_MEMORY;
    std::longjmp(e.jump, 1);
  };
  errors.base.emit_message = [](j_common_ptr info, int level) {
    auto& e = errors_of(info);
    if (level < 0 && e.base.num_warnings++ == 0) keep_text(e.warning, words_of(e.base.msg_code));
  };
}

/// Called now and then while an image of several scans is read.
void watch_scans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  const auto& jpeg = *reinterpret_cast<j_decompress_ptr>(info);
  const auto scans = static_cast<double>(jpeg.input_scan_number);
  if (scans <= kMostScans && scans * jpeg.image_width * jpeg.image_height <= kMostWork) return;
  auto& e = errors_of(info);
  std::snprintf(e.text, sizeof e.text, "more than %d scans, wanted one pass over the image, or a few",
                jpeg.input_scan_number - 1);
  std::longjmp(e.jump, 1);
}

int orientation_of(const jpeg_decompress_struct& jpeg) {
  constexpr std::size_t kHead = 6;
  for (auto* m = jpeg.marker_list; m; m = m->next)
    if (m->marker == JPEG_APP0 + 1 && m->data_length > kHead && std::memcmp(m->data, "Exif\0\0", kHead) == 0)
      return exif_orientation({reinterpret_cast<const std::byte*>(m->data + kHead), m->data_length - kHead});
  return 1;
}

/// No object with a destructor may live across the jump: `out` belongs to the caller.
bool decode(std::span<const std::byte> bytes, const std::string& path, Image& out, int& orientation,
            JpegErrors& errors) {
  jpeg_decompress_struct jpeg;
  jpeg.err = &errors.base;
  prepare(errors);
  if (setjmp(errors.jump)) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_progress_mgr progress{};
  progress.progress_monitor = watch_scans;
  jpeg.progress = &progress;
  jpeg.mem->max_memory_to_use = kMostMemory;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&jpeg, TRUE);
  // Decoding starts with memory for all coefficients of an image of several scans.
  try {
    check_image_size(path, jpeg.image_width, jpeg.image_height);
  } catch (...) {
    jpeg_destroy_decompress(&jpeg);
    throw;
  }
  orientation = orientation_of(jpeg);
  out.grey = jpeg.num_components == 1;
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  out.width = static_cast<int>(jpeg.output_width);
  out.height = static_cast<int>(jpeg.output_height);
  try {
    out.rgb.resize(std::size_t{3} * jpeg.output_width * jpeg.output_height);
  } catch (...) {
    jpeg_destroy_decompress(&jpeg);
    throw;
  }
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = out.rgb.data() + std::size_t{3} * jpeg.output_scanline * jpeg.output_width;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

}  // namespace

Image read_jpeg(const std::string& path, std::span<const std::byte> bytes) {
  Image out;
  JpegErrors errors{};
  int orientation = 1;
  if (!decode(bytes, path, out, orientation, errors))
    fail(errors.no_memory ? ErrorCode::out_of_memory : ErrorCode::bad_file, "{}: JPEG: {}", path,
         errors.text);
  if (errors.base.num_warnings > 0) out.notes.push_back(std::string("DAMAGED: ") + errors.warning);
  return turned_upright(std::move(out), orientation);
}

}  // namespace lamina::tool
