/* A Redis module with a type of its own, named as RedisJSON names its documents.
 *
 * It stores nothing: tools only have to cope with a key of a type that they cannot read. The functions of the
 * server are asked for by name, as redismodule.h does, which is not installed with a server.
 */
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t version;
    void *(*rdb_load)(void *io, int version);
    void (*rdb_save)(void *io, void *value);
    void (*aof_rewrite)(void *io, void *key, void *value);
    size_t (*mem_usage)(const void *value);
    void (*digest)(void *digest, void *value);
    void (*free)(void *value);
} Methods;

static int (*get_api)(const char *name, void *place);
static int (*set_attributes)(void *context, const char *name, int version, int api);
static void *(*create_type)(void *context, const char *name, int version, Methods *methods);
static int (*create_command)(void *context, const char *name, int (*run)(void *, void **, int),
                             const char *flags, int first, int last, int step);
static void *(*open_key)(void *context, void *name, int mode);
static int (*set_value)(void *key, void *type, void *value);
static void (*close_key)(void *key);
static void *(*allocate)(size_t bytes);
static void (*release)(void *value);
static int (*reply)(void *context, const char *text);

static void *document;

static void *load(void *io, int version) { return allocate(1); }
static void save(void *io, void *value) {}
static void rewrite(void *io, void *key, void *value) {}
static void forget(void *value) { release(value); }

static int set(void *context, void **arguments, int count) {
    void *key = open_key(context, arguments[1], 2);
    set_value(key, document, allocate(1));
    close_key(key);
    return reply(context, "OK");
}

int RedisModule_OnLoad(void *context, void **arguments, int count) {
    Methods methods = {1, load, save, rewrite, NULL, NULL, forget};
    get_api = *(int (**)(const char *, void *))context;
    get_api("RedisModule_SetModuleAttribs", &set_attributes);
    get_api("RedisModule_CreateDataType", &create_type);
    get_api("RedisModule_CreateCommand", &create_command);
    get_api("RedisModule_OpenKey", &open_key);
    get_api("RedisModule_ModuleTypeSetValue", &set_value);
    get_api("RedisModule_CloseKey", &close_key);
    get_api("RedisModule_Alloc", &allocate);
    get_api("RedisModule_Free", &release);
    get_api("RedisModule_ReplyWithSimpleString", &reply);
    set_attributes(context, "document", 1, 1);
    document = create_type(context, "ReJSON-RL", 0, &methods);
    if (document == NULL) return 1;
    return create_command(context, "document.set", set, "write", 1, 1, 1);
}
