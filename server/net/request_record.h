/* SPDX-License-Identifier: MIT
 *
 * What is kept of a finished request: its line in the log and its share of the metrics.
 */
#ifndef REQUEST_RECORD_H
#define REQUEST_RECORD_H

#include "request.h"

/* `busy`: a worker still fills a block of its stream, so the call's error is not to be looked at. */
void request_record(const struct request *request, enum request_outcome outcome, bool busy);

#endif
