// Naming disks as the guest's kernel would: sda to sdz, sdaa and on. One DeviceNames a prefix ("vd", "sd").
//
// A disk that status.volumeStatus already gave a name keeps it; the others take the first free one in their order.
// Rules: makeDeviceName and newDeviceNamer of pkg/virt-launcher/virtwrap/converter/converter.go:516,1282.
#pragma once
#include <vector>

#include "names.hpp"
#include "writer.hpp"

namespace kv {

struct DeviceName {
    Value given;          // the name in the status; absent: prefix and letters of the number
    uint32_t number = 0;  // 0 for sda; the unit on a SCSI bus
    bool none = false;    // all names are taken
};

class DeviceNames {
   public:
    static constexpr uint32_t kMost = 26 * 26 * 26;

    void clear() {
        disks_.clear();
        if (!taken_.empty()) taken_.assign(taken_.size(), false);
        next_ = 0;
    }

    // The disk has this name already.
    void keep(Text disk, Value name, Text prefix) {
        const uint32_t number = number_of(text(name), prefix);
        disks_.put(disk, name, number < kMost ? number : 0);
        if (number < kMost) {
            if (taken_.empty()) taken_.resize(kMost, false);
            taken_[number] = true;
        }
    }

    // The disk's name: the one it has, or the first that is free.
    DeviceName name(Text disk) {
        const int64_t known = disks_.index(disk);
        if (known >= 0) return {disks_.get(disk), static_cast<uint32_t>(known), false};
        while (next_ < kMost && !taken_.empty() && taken_[next_]) ++next_;
        if (next_ >= kMost) return {{}, 0, true};
        disks_.put(disk, {}, next_);
        return {{}, next_++, false};
    }

   private:
    // 0 for sda, 26 for sdaa; kMost for what is no such name.
    static uint32_t number_of(Text name, Text prefix) {
        if (name.size <= prefix.size || name.size > prefix.size + 3) return kMost;
        if (prefix.size && std::memcmp(name.data, prefix.data, prefix.size) != 0) return kMost;
        uint32_t number = 0;
        for (size_t i = prefix.size; i < name.size; ++i) {
            if (name.data[i] < 'a' || name.data[i] > 'z') return kMost;
            number = number * 26 + static_cast<uint32_t>(name.data[i] - 'a') + 1;
        }
        return number - 1 < kMost ? number - 1 : kMost;
    }

    Names disks_;
    std::vector<bool> taken_;
    uint32_t next_ = 0;
};

// The letters of a number: a, z, aa.
inline void put_letters(Writer& w, uint32_t number) {
    char letters[8];
    int i = 8;
    for (uint32_t n = number + 1; n > 0 && i > 0; n = (n - 1) / 26) letters[--i] = static_cast<char>('a' + (n - 1) % 26);
    put(w, letters + i, static_cast<size_t>(8 - i));
}

}  // namespace kv
