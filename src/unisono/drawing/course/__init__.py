"""The course: eight lessons about collective communication, each an animated page with captions and a question."""

from unisono.drawing.course.contents import COURSE, course_names, find_page, lesson_page, write_course

__all__ = ["COURSE", "course_names", "find_page", "lesson_page", "write_course"]
