#include "agent/service/quiet_memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdint>

namespace haulout::agent {
namespace asio = boost::asio;

namespace {

// A segment that is not writable has the content of its file, since relocations are only in writable segments. Dropping
// its pages therefore loses nothing.
int drop_unwritable(dl_phdr_info* object, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t from = (object->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t to = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // Fails for a segment without a file, such as the vdso. That failure is harmless.
    static_cast<void>(::madvise(std::bit_cast<void*>(from), to - from, MADV_DONTNEED));
  }
  return 0;
}

}  // namespace

void give_memory_back() {
  ::malloc_trim(0);
  ::dl_iterate_phdr(drop_unwritable, nullptr);
}

QuietMemory::QuietMemory(asio::any_io_executor executor, Clock& clock, std::function<void()> give_back)
    : clock_(clock), news_(std::move(executor)), give_back_(std::move(give_back)) {}

asio::awaitable<void> QuietMemory::run() {
  for (;;) {
    co_await news_.wait_until(clock_, TimePoint::max());
    bool more = true;
    while (more) more = co_await news_.wait_until(clock_, clock_.now() + quiet);
    give_back_();
  }
}

}  // namespace haulout::agent
