// Host CPUs for VMs with dedicated ones: what the node's topology leaves to a pod, and how guest cores are laid onto it.
// The rules are those of pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go:43-300.
#pragma once
#include <unordered_map>
#include <vector>

#include "tape.hpp"

namespace kv {

// The threads that a pod may use, core after core and cell after cell. Bound once a context.
struct HostCpus {
    std::vector<uint32_t> set;       // the pod's CPUs in the order given
    std::vector<uint32_t> threads;   // those that the topology knows
    std::vector<uint32_t> core_end;  // where in `threads` each core ends
    std::vector<uint32_t> cell_end;  // where in `core_end` each cell ends
    std::vector<uint32_t> cell_id;
    std::unordered_map<uint32_t, uint32_t> cell_of;  // host CPU -> the cell that lists it, by its place
};

// Gives out the threads of HostCpus, each once. A host core with room for a whole guest core goes to one; what is left of it,
// and cores that are too small, are loose threads. The memory is kept from one conversion to the next.
class CpuPool {
   public:
    void reset(const HostCpus& host, uint64_t threads_per_core) {
        host_ = &host;
        per_core_ = threads_per_core;
        first_ = 0;
        count_ = host.cell_end.size();
        if (cells_.size() < count_) cells_.resize(count_);
        uint32_t core = 0;
        for (size_t i = 0; i < count_; ++i) {
            Cell& cell = cells_[i];
            cell.loose.clear();
            cell.loose_at = 0;
            cell.last = host.cell_end[i];
            for (cell.core = cell.last; core < cell.last; ++core) {
                if (end_of(core) - start_of(core) < per_core_) loosen(cell, start_of(core), end_of(core));
                else if (cell.core == cell.last) cell.core = core;
            }
            cell.at = cell.core < cell.last ? start_of(cell.core) : 0;
        }
    }

    // Threads for `cores` guest cores are put behind `out`; answers how many found no place.
    uint64_t fit(uint64_t cores, bool may_cross_cells, std::vector<uint32_t>& out) {
        for (size_t i = 0; i < count_; ++i)  // cores that share a host core
            for (Cell& cell = cells_[i]; cores > 0 && cell.core < cell.last; --cores) take_whole(cell, per_core_, out);
        for (size_t i = 0; i < count_; ++i)  // cores that share a cell
            for (Cell& cell = cells_[i]; cores > 0 && left(cell) >= per_core_; --cores) take_loose(cell, per_core_, out);
        if (!may_cross_cells) return cores;
        uint64_t wanted = cores * per_core_;
        for (size_t i = 0; i < count_ && wanted > 0; ++i) {
            const uint64_t n = left(cells_[i]) < wanted ? left(cells_[i]) : wanted;
            take_loose(cells_[i], n, out);
            wanted -= n;
        }
        return wanted / per_core_;  // less than a core's worth goes unnoticed, as it does at vcpu.go:285
    }

    // One thread more, loose ones first; false when all are given out.
    bool one(std::vector<uint32_t>& out) {
        for (; first_ < count_; ++first_) {
            Cell& cell = cells_[first_];
            if (left(cell) > 0) take_loose(cell, 1, out);
            else if (cell.core < cell.last) take_whole(cell, 1, out);
            else continue;
            return true;
        }
        return false;
    }

   private:
    struct Cell {
        uint32_t core = 0, last = 0;  // the first core that still has room for a guest core, and the end of the cell
        uint32_t at = 0;              // the first thread of it that is not given out
        std::vector<uint32_t> loose;
        size_t loose_at = 0;
    };

    uint32_t start_of(uint32_t core) const { return core == 0 ? 0 : host_->core_end[core - 1]; }
    uint32_t end_of(uint32_t core) const { return host_->core_end[core]; }
    static uint64_t left(const Cell& cell) { return cell.loose.size() - cell.loose_at; }

    void loosen(Cell& cell, uint32_t from, uint32_t to) {
        cell.loose.insert(cell.loose.end(), host_->threads.begin() + from, host_->threads.begin() + to);
    }

    void take_loose(Cell& cell, uint64_t n, std::vector<uint32_t>& out) {
        const auto from = cell.loose.begin() + static_cast<ptrdiff_t>(cell.loose_at);
        out.insert(out.end(), from, from + static_cast<ptrdiff_t>(n));
        cell.loose_at += n;
    }

    void take_whole(Cell& cell, uint64_t n, std::vector<uint32_t>& out) {
        const auto from = host_->threads.begin() + cell.at;
        out.insert(out.end(), from, from + static_cast<ptrdiff_t>(n));
        cell.at += static_cast<uint32_t>(n);
        if (end_of(cell.core) - cell.at >= per_core_) return;
        loosen(cell, cell.at, end_of(cell.core));
        do ++cell.core;
        while (cell.core < cell.last && end_of(cell.core) - start_of(cell.core) < per_core_);
        cell.at = cell.core < cell.last ? start_of(cell.core) : 0;
    }

    const HostCpus* host_ = nullptr;
    uint64_t per_core_ = 1;
    size_t count_ = 0;
    size_t first_ = 0;  // the cells before are empty, and stay so
    std::vector<Cell> cells_;
};

// A guest NUMA cell for each host cell that vCPUs are pinned to.
struct GuestNuma {
    bool mapped = false;
    uint32_t cells = 0;            // of the guest
    std::vector<uint32_t> vcpus;   // vCPUs, host cell after host cell
    std::vector<uint32_t> start;   // where in `vcpus` each host cell starts; one entry more than there are cells
    uint64_t page_bytes = 0;
    uint64_t pages = 0;            // of each cell ...
    uint64_t larger = 0;           // ... and the first so many have one more
};

}  // namespace kv
