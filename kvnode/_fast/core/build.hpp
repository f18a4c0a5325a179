// The state of one conversion: the bound input, what is derived from it once, the output, and the first error.
//
// Sections never stop on an error: they note it with reject() and go on with a harmless value, and the caller looks once at
// the end. So no section has error paths, and none needs the GIL.
#pragma once
#include <string>

#include "cpus.hpp"
#include "device_names.hpp"
#include "fields.hpp"
#include "names.hpp"
#include "parse.hpp"
#include "quantity.hpp"
#include "writer.hpp"

namespace kv {

enum Arch : uint8_t { kAmd64, kArm64, kS390x };

// What the node knows, bound once and read by any number of conversions at a time.
struct ContextData {
    Parser parser;
    Context f;
    Smbios smbios;
    EfiPaths efi;
    Names block_pvc, block_dv, disks_info, hotplug, permanent, attachment, cbt, discard_ignore, env;
    Arch arch = kAmd64;
    bool kvm_available = false, allow_emulation = false, free_page_reporting = false, bochs_for_efi = false;
    bool serial_console_log = false, pci_numa_aware = false, efi_secure_loader = false, efi_auto_selection = false;
    uint64_t balloon_period = 0;
    HostCpus cpus;
    Names sriov, claims;  // network -> PCI address; resource claim -> its requests
};

// A VMI has a context of its own, which the cache seldom holds: it is fetched while the JSON is parsed.
inline void fetch(const ContextData& context) {
    const char* from = reinterpret_cast<const char*>(&context);
    for (size_t i = 0; i < sizeof context; i += 64) __builtin_prefetch(from + i);
    context.parser.fetch();
}

struct Error {
    bool set = false;
    Value at;                 // the value at fault, or the object that lacks a field
    const char* field = "";   // the field of `at` that is at fault, if any
    const char* what = "";    // what is wrong and what would be right
    std::string detail;       // a name or text put behind `what`, may be empty
};

struct Build {
    const ContextData* ctx = nullptr;
    Writer w;
    Writer qemu;  // <qemu:arg/> elements, gathered as sections come by

    // the input, bound
    Value root;
    Vmi vmi;
    Metadata meta;
    Spec spec;
    Status status;
    Domain domain;
    Devices devices;
    Cpu cpu;
    Memory memory;
    Firmware firmware;
    Resources resources;
    std::vector<Disk> disks_bound;            // spec.domain.devices.disks, in order
    std::vector<Interface> interfaces_bound;  // spec.domain.devices.interfaces
    Names volumes;        // volume name -> the volume, and its index in spec.volumes
    Names volume_status;  // volume name -> its entry in status.volumeStatus

    // derived once, by begin()
    Text name, name_space, uid;
    bool use_transitional = false;
    bool sev = false, tdx = false, secure_execution = false;  // launch security: AMD SEV, ES or SNP; Intel TDX; IBM SE
    bool iommu = false;                                       // virtio devices need iommu="on"
    bool efi_boot = false;
    bool shared_memory = false;                               // other processes map the guest's memory
    uint64_t cores = 1, sockets = 1, threads = 1;             // topology as requested now
    uint64_t vcpus = 1;                                       // their product
    uint64_t max_vcpus = 1;                                   // with maxSockets, where hotplug is supported

    // CPUs: the host CPU of each vCPU, and what is left of the pod's
    bool dedicated_cpus = false;
    std::vector<uint32_t> vcpu_pins, io_thread_pins, emulator_pins;
    CpuPool cpu_pool;
    GuestNuma guest_numa;

    // interfaces and host devices
    Names networks, interface_status;  // name -> the network, its entry in status.interfaces; filled when they are asked for
    Names device_cursor, device_taken; // resource -> how far its addresses are used up; addresses given out

    // left by one section for a later one
    uint64_t io_threads = 0, auto_threads = 0;
    bool has_io_threads = false;

    bool place_on_root = false;  // PCI devices get a slot of the root complex
    int root_slot = 0;           // the last one given

    // what the list of disks amounts to, and where the assignment of I/O threads to them stands
    uint64_t disks = 0, dedicated_disks = 0, shared_virtio_disks = 0;
    bool scsi_disk = false, dedicated_scsi_disk = false, usb_disk = false;
    bool io_thread_pool = false;  // every virtio disk is served by all threads
    uint64_t next_dedicated_thread = 0, next_auto_thread = 0;
    DeviceNames virtio_names, scsi_names, other_names;

    std::string scratch;  // for putting a key together

    Error error;
};

__attribute__((cold)) inline void reject_in(Build& b, Value at, const char* field, const char* what, Text detail = {}) {
    if (b.error.set) return;
    b.error.set = true;
    b.error.at = at;
    b.error.field = field;
    b.error.what = what;
    b.error.detail.assign(detail.data ? detail.data : "", detail.size);
}

__attribute__((cold)) inline void reject(Build& b, Value at, const char* what, Text detail = {}) { reject_in(b, at, "", what, detail); }

// --- typed reads: absent gives the default, another type is an error ------------------------------------------------

inline uint64_t uint_or(Build& b, Value v, uint64_t otherwise, uint64_t most = UINT32_MAX) {
    const char k = kind(v);
    if (k == '\0') return otherwise;
    if ((k == 'l' && static_cast<int64_t>(v.at[1]) >= 0) || k == 'u') {
        if (v.at[1] <= most) return v.at[1];
        reject(b, v, "is too large a number");
        return otherwise;
    }
    reject(b, v, "must be a whole number that is not negative");
    return otherwise;
}

inline int64_t int_or(Build& b, Value v, int64_t otherwise) {
    const char k = kind(v);
    if (k == '\0') return otherwise;
    if (k == 'l') return static_cast<int64_t>(v.at[1]);
    reject(b, v, "must be a whole number of 64 bits");
    return otherwise;
}

inline bool bool_or(Build& b, Value v, bool otherwise) {
    const char k = kind(v);
    if (k == '\0') return otherwise;
    if (k == 't') return true;
    if (k == 'f') return false;
    reject(b, v, "must be true or false");
    return otherwise;
}

// Absent and "" are the same to the reference's string fields.
inline Text str(Build& b, Value v) {
    const char k = kind(v);
    if (k == '"') return string_at(v.doc, v.at);
    if (k != '\0') reject(b, v, "must be a string");
    return {};
}

inline Items items_of(Build& b, Value v) {
    if (v.at && kind(v) != '[') reject(b, v, "must be a list");
    return items(v);
}

template <class T>
inline void bind(Build& b, Value v, T* out) {
    static_assert(sizeof(T) % sizeof(Value) == 0, "a struct of KV_FIELDS");
    clear_slots<sizeof(T) / sizeof(Value)>(reinterpret_cast<Value*>(out));
    if (!v.at) return;
    if (kind(v) != '{') reject(b, v, "must be an object");
    else fill(v, T::table(), reinterpret_cast<Value*>(out));
}

// Every object of a list, up to a number that no machine comes near. Walks that go along look at the vector's size.
template <class T>
inline void bind_all(Build& b, Value list, std::vector<T>& out) {
    if (out.size() > 512) out = {};  // room for a huge VMI is given back
    out.clear();
    for (Items it = items_of(b, list); next(it);) {
        if (out.size() == 65536) return reject(b, list, "has more than 65536 entries");
        out.emplace_back();
        bind(b, it.value, &out.back());
    }
}

// One field of an object, looked for by a walk: where no more is asked of the object.
inline Value field_of(Build& b, Value v, const char* name) {
    if (v.at && kind(v) != '{') reject(b, v, "must be an object");
    return member(v, name);
}

// A quantity, as text or as a JSON number, rounded up to a whole number. Absent: `otherwise`.
int64_t quantity_or(Build& b, Value v, int64_t otherwise);

// The same in bytes of guest memory: what is no whole number in the reference's fast form loses one byte there
// (pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go:335). Negative is an error.
uint64_t memory_or(Build& b, Value v, uint64_t otherwise);

// Whether two quantities are the same amount, to the thousandth.
bool same_quantity(Build& b, Value one, Value other);

// --- writing values of the manifest, with their type checked ---------------------------------------------------------

inline void attr_str(Build& b, const char* name, Value v) {
    str(b, v);
    attr(b.w, name, v);
}

// Only when it is there and not empty.
inline void attr_str_if(Build& b, const char* name, Value v) {
    if (str(b, v)) attr(b.w, name, v);
}

inline void put_str(Build& b, Value v) {
    str(b, v);
    put_value(b.w, v);
}

// <alias name="ua-NAME"/>
inline void put_alias(Build& b, Value name) {
    lit(b.w, "<alias name=\"ua-");
    put_str(b, name);
    lit(b.w, "\"/>");
}

// <boot order="N"/>
inline void put_boot(Build& b, Value order) {
    if (!order.at) return;
    close_tag(b.w);
    lit(b.w, "<boot order=\"");
    put_uint(b.w, uint_or(b, order, 0, UINT64_MAX));
    lit(b.w, "\"/>");
}

// --- what the device plugins left in the environment ------------------------------------------------------------------

// The variable PREFIX_RESOURCE, the resource's name in capitals, with '/' and '.' as '_' (pkg/util/util.go:89).
inline Value plugin_variable(Build& b, const char* prefix, Text resource) {
    b.scratch.assign(prefix);
    b.scratch += '_';
    for (size_t i = 0; i < resource.size; ++i) {
        const char c = resource.data[i];
        b.scratch += c == '/' || c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return b.ctx->env.get({b.scratch.data(), b.scratch.size()});
}

// --- life of a conversion --------------------------------------------------------------------------------------------

// "virtio", or the transitional model that the architecture and useVirtioTransitional ask for.
inline const char* virtio_model(const Build& b, bool transitional) {
    if (b.ctx->arch == kS390x) return "virtio";
    return transitional ? "virtio-transitional" : "virtio-non-transitional";
}

// Where a value stands in its document: spec.domain.devices.disks[3].name.
std::string path_of(Value v);

// The error in full: its field and its message.
std::string error_field(const Build& b);
std::string error_message(const Build& b);

}  // namespace kv
