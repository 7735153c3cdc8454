// The detector: which x86-64 level this CPU has. Compiled for the baseline, loaded before the core.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpu_level.hpp"

namespace {

PyObject* level(PyObject*, PyObject*) { return PyUnicode_FromString(best_level()); }

PyMethodDef methods[] = {{"level", level, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_cpu", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&definition); }
