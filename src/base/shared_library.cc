#include "base/shared_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/no_destructor.h"

namespace lamina {
namespace {

constexpr std::size_t kMostFunctions = 4096;

/// The file's bytes as ELF says where they are; everything is checked against its size.
class ElfFile {
 public:
  explicit ElfFile(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return out;
  }

  std::optional<Elf64_Ehdr> header() const {
    const auto h = at<Elf64_Ehdr>(0);
    return h && std::memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 ? h : std::nullopt;
  }

  /// The loader maps segments without looking at the file's size: touching what is missing kills the process.
  bool complete(const Elf64_Ehdr& h) const {
    for (std::uint64_t i = 0; i < h.e_phnum; ++i) {
      const auto p = at<Elf64_Phdr>(h.e_phoff + i * sizeof(Elf64_Phdr));
      if (!p) return false;
      if (p->p_type == PT_LOAD && (p->p_offset > bytes_.size() || bytes_.size() - p->p_offset < p->p_filesz))
        return false;
    }
    return h.e_phnum > 0;
  }

  std::vector<std::string> functions() const {
    std::vector<std::string> out;
    const auto h = header();
    for (std::uint64_t i = 0; h && i < h->e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(h->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section || section->sh_type != SHT_DYNSYM) continue;
      const auto names = at<Elf64_Shdr>(h->e_shoff + std::uint64_t{section->sh_link} * sizeof(Elf64_Shdr));
      const auto count = std::min<std::uint64_t>(section->sh_size / sizeof(Elf64_Sym), kMostFunctions);
      for (std::uint64_t s = 0; names && s < count; ++s) {
        const auto symbol = at<Elf64_Sym>(section->sh_offset + s * sizeof(Elf64_Sym));
        if (!symbol || symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) continue;
        const auto from = names->sh_offset + symbol->st_name;
        if (from >= bytes_.size()) continue;
        const auto text = bytes_.substr(from, 200);
        out.emplace_back(text.substr(0, text.find('\0')));
      }
    }
    return out;
  }

 private:
  std::string_view bytes_;
};

std::shared_ptr<const MappedFile> checked_file(const std::string& path) {
  auto file = MappedFile::open(path);
  const ElfFile elf(file->text());
  const auto h = elf.header();
  if (!h) fail(ErrorCode::bad_file, "{}: is no shared library", path);
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != EM_X86_64)
    fail(ErrorCode::bad_file, "{}: is a library for another processor, wanted x86-64", path);
  if (h->e_type != ET_DYN)
    fail(ErrorCode::bad_file, "{}: is no shared library but a program or object", path);
  if (h->e_phentsize != sizeof(Elf64_Phdr) || !elf.complete(*h))
    fail(ErrorCode::bad_file, "{}: is damaged or cut off", path);
  return file;
}

bool exists(const std::string& path) {
  try {
    return MappedFile::open(path) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

/// dlopen() looks at a name without a slash in places of its own.
std::string found(const std::string& path) {
  if (path.empty()) fail(ErrorCode::bad_file, "the name of an extension is empty");
  if (path.find('\0') != std::string::npos) fail(ErrorCode::bad_file, "a file name holds a zero byte");
  if (path.find('/') != std::string::npos) return path;
  const char* const folders = std::getenv("LAMINA_EXTENSION_PATH");
  for (std::string_view rest = folders ? folders : ""; !rest.empty();) {
    const auto colon = std::min(rest.find(':'), rest.size());
    auto candidate = std::string(rest.substr(0, colon)) + "/" + path;
    if (colon > 0 && exists(candidate)) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return "./" + path;
}

/// The loader begins its sentences with the path, too.
std::string loader_says(const std::string& path) {
  const char* const text = ::dlerror();
  std::string out = text ? text : "unknown error";
  if (out.starts_with(path + ": ")) out.erase(0, path.size() + 2);
  return out;
}

}  // namespace

std::shared_ptr<const MappedFile> file_with(void (*function)()) {
  Dl_info info{};
  void* map = nullptr;
  const bool known = ::dladdr1(reinterpret_cast<void*>(function), &info, &map, RTLD_DL_LINKMAP) != 0 && map &&
                     info.dli_fname;
  const bool program = !known || static_cast<const link_map*>(map)->l_name[0] == 0;  // it has no name there
  return MappedFile::open(program ? "/proc/self/exe" : info.dli_fname);
}

namespace {

/// What this engine has opened.
struct Opened {
  std::recursive_mutex mutex;  // a library may go, or open another one, while one is opened
  std::vector<std::weak_ptr<SharedLibrary>> libraries;
  std::multiset<void*> handles;
};
Opened& opened() {
  static NoDestructor<Opened> all;
  return *all;
}

}  // namespace

std::shared_ptr<SharedLibrary> SharedLibrary::open(const std::string& given) {
  const auto path = found(given);
  auto file = checked_file(path);
  auto& all = opened();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.libraries, [](const auto& known) { return known.expired(); });
  for (const auto& known : all.libraries)
    if (auto library = known.lock();
        library && library->path_ == path && library->file_->identity() == file->identity())
      return library;
  std::shared_ptr<SharedLibrary> library(new SharedLibrary);
  library->path_ = path;
  library->file_ = std::move(file);
  library->load();
  all.handles.insert(library->handle_);
  all.libraries.push_back(library);
  return library;
}

void SharedLibrary::load() {
  if (void* const there = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    ::dlclose(there);
    if (!opened().handles.contains(there)) load_copy();
  }
  if (!handle_) handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) fail(ErrorCode::bad_file, "{}: cannot be loaded: {}", path_, loader_says(path_));
}

/// The loader knows files by device and inode. Where that fails the library is shared.
void SharedLibrary::load_copy() {
  copy_ = ::memfd_create(name().c_str(), MFD_CLOEXEC);
  if (copy_ < 0) return;
  auto rest = file_->bytes();
  while (!rest.empty()) {
    const auto written = ::write(copy_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  handle_ = ::dlopen(fmt::format("/proc/self/fd/{}", copy_).c_str(), RTLD_NOW | RTLD_LOCAL);
}

SharedLibrary::~SharedLibrary() {
  if (handle_) {
    auto& all = opened();
    const std::lock_guard lock(all.mutex);
    if (const auto it = all.handles.find(handle_); it != all.handles.end()) all.handles.erase(it);
    ::dlclose(handle_);
  }
  if (copy_ >= 0) ::close(copy_);
}

std::string SharedLibrary::name() const { return path_.substr(path_.rfind('/') + 1); }

void* SharedLibrary::symbol(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (!address) return nullptr;
  // dlsym() looks into what the library links with, too: another extension, perhaps, or the program.
  Dl_info info{};
  void* own = nullptr;
  if (::dladdr1(address, &info, &own, RTLD_DL_LINKMAP) == 0) return address;
  return own == handle_ ? address : nullptr;
}

std::vector<std::string> SharedLibrary::functions() const { return ElfFile(file_->text()).functions(); }

void SharedLibrary::never_unload() {
  const auto file = copy_ < 0 ? path_ : fmt::format("/proc/self/fd/{}", copy_);
  ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | RTLD_NOLOAD);
}

}  // namespace lamina
