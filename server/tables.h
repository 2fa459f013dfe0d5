/* SPDX-License-Identifier: MIT
 *
 * The loaded tables: every *.npy and *.safetensors file of one folder, read at start, const afterwards,
 * shared by all threads. A table's name is its file's name without the suffix. The files are read, not
 * mapped: a file that is cut short under a mapping would kill the process.
 */
#ifndef TABLES_H
#define TABLES_H

#include "posenc.h"

struct tables;

struct table_tensor {
    const char *name; /* in an npy file, which has no names, the table's own */
    struct pe_tensor tensor;
    uint64_t
        digest; /* FNV-1a, 64 bits, over "dtype:[shape]:" and the data; tells contents apart, not forgeries */
};

struct table {
    const char *name, *file;            /* file: without the folder */
    uint64_t bytes;                     /* of the file */
    uint64_t digest;                    /* over the digests and names of its tensors */
    const struct table_tensor *tensors; /* in the order of their names */
    size_t n_tensors;
};

/* HANDLE. Reads all of `folder` ("" or NULL: no tables), at most `limit` bytes of files together. An error
 * names the file: a name with other characters than [A-Za-z0-9._-], two files of one name, a malformed file,
 * a number that is not finite. Files with other suffixes and hidden ones are left out.
 */
int tables_open(struct tables **tables, const char *folder, uint64_t limit, struct pe_error *err) PE_CHECKED;
void tables_close(struct tables *tables);

/* In the order of their names. tables NULL is an empty collection, here and below. */
size_t tables_count(const struct tables *tables);
const struct table *tables_at(const struct tables *tables, size_t i);
/* PE_ERR_UNKNOWN_NAME at "table"; the text names what there is. */
const struct table *tables_table(const struct tables *tables, const char *name, struct pe_error *err);
/* tensor_name NULL: the only one; PE_ERR_MISSING at "tensor_name" when there are several,
 * PE_ERR_UNKNOWN_NAME there for an unknown one. VIEW that lives as long as the tables. */
const struct table_tensor *tables_tensor(const struct tables *tables, const char *name,
                                         const char *tensor_name, struct pe_error *err);
const struct pe_tensor *tables_find(const struct tables *tables, const char *name, const char *tensor_name,
                                    struct pe_error *err);

#endif
